package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kubeconfigs compares two answers about kubeconfig files.
func kubeconfigs(want, got Object) string {
	if difference := members("loads", "valid")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if want["loads"] != true {
		return ""
	}
	for _, name := range []string{"merged", "resolved"} {
		if difference := views(name, want[name], got[name]); difference != "" {
			return difference
		}
	}
	// Only some lines carry the redacted view.
	if want["redacted"] != nil && got["redacted"] != nil {
		if difference := redactions("redacted", want["redacted"], got["redacted"]); difference != "" {
			return difference
		}
	}
	wanted, _ := want["errors"].([]any)
	given, _ := got["errors"].([]any)
	if len(wanted) != len(given) {
		return differs("errors", wanted, given)
	}
	return clients(want, got)
}

// clients: a client that cannot be built has to be refused at the latest when it is built. The rest is informative.
func clients(want, got Object) string {
	wanted, _ := want["client"].(Object)
	given, _ := got["client"].(Object)
	if wanted == nil || given == nil || empty(wanted["build_error"]) || !empty(given["build_error"]) {
		return ""
	}
	return fmt.Sprintf("client: built, but the reference says %s", short(wanted["build_error"]))
}

// views compares two configurations; an absent member, null and an empty list are the same thing.
func views(path string, want, got any) string {
	return walk(path, want, got, func(path string, want, got any) string {
		if Same(want, got) {
			return ""
		}
		return differs(path, want, got)
	})
}

// redactions lets the other side hide more, never less.
func redactions(path string, want, got any) string {
	return walk(path, want, got, func(path string, want, got any) string {
		if Same(want, got) || hides(got) {
			return ""
		}
		return differs(path, want, got)
	})
}

func hides(value any) bool {
	text, ok := value.(string)
	return ok && (strings.Contains(text, "REDACTED") || strings.Contains(text, "DATA+OMITTED") || strings.Contains(text, "DATA OMITTED"))
}

func walk(path string, want, got any, leaf func(string, any, any) string) string {
	if nothing(want) && nothing(got) {
		return ""
	}
	wanted, ok := want.(Object)
	given, also := got.(Object)
	if ok && also {
		for _, name := range names(wanted, given) {
			if difference := walk(path+"."+name, wanted[name], given[name], leaf); difference != "" {
				return difference
			}
		}
		return ""
	}
	list, ok := want.([]any)
	other, also := got.([]any)
	if ok && also && len(list) == len(other) {
		for index := range list {
			if difference := walk(fmt.Sprintf("%s[%d]", path, index), list[index], other[index], leaf); difference != "" {
				return difference
			}
		}
		return ""
	}
	return leaf(path, want, got)
}

func names(a, b Object) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}

func nothing(value any) bool {
	list, ok := value.([]any)
	return value == nil || ok && len(list) == 0
}

func empty(value any) bool {
	return nothing(value) || value == ""
}
