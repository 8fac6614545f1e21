package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// raw is a YAML scalar to be written as it stands. In JSON it is a string.
type raw string

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// yamlText writes a tree in block style. Strings are quoted as in JSON, which YAML reads the same way.
func yamlText(tree any) string {
	var out strings.Builder
	writeYAML(&out, tree, "")
	if !strings.HasSuffix(out.String(), "\n") {
		out.WriteString("\n")
	}
	return out.String()
}

func writeYAML(out *strings.Builder, tree any, indent string) {
	switch tree := tree.(type) {
	case map[string]any:
		if len(tree) == 0 {
			out.WriteString("{}\n")
			return
		}
		for index, name := range slices.Sorted(maps.Keys(tree)) {
			if index > 0 {
				out.WriteString(indent)
			}
			if plainKey.MatchString(name) {
				out.WriteString(name)
			} else {
				out.WriteString(jsonText(name))
			}
			out.WriteString(":")
			writeMember(out, tree[name], indent+"  ")
		}
	case []any:
		if len(tree) == 0 {
			out.WriteString("[]\n")
			return
		}
		for index, element := range tree {
			if index > 0 {
				out.WriteString(indent)
			}
			out.WriteString("- ")
			writeYAML(out, element, indent+"  ")
		}
	case raw:
		out.WriteString(string(tree) + "\n")
	default:
		out.WriteString(jsonText(tree) + "\n")
	}
}

func writeMember(out *strings.Builder, value any, indent string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 {
			out.WriteString("\n" + indent)
			writeYAML(out, value, indent)
			return
		}
	case []any:
		if len(value) > 0 {
			out.WriteString("\n" + indent)
			writeYAML(out, value, indent)
			return
		}
	}
	out.WriteString(" ")
	writeYAML(out, value, indent)
}

func jsonText(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "null"
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// document is a tree with how it is written: {"tree": …, "style": "yaml" or "json", "cuts": [[position, length, text], …]}.
func (r *random) document(tree any) map[string]any {
	out := map[string]any{"tree": tree, "style": pick(r, "yaml", "yaml", "json")}
	if r.chance(6) {
		cut := []any{r.IntN(2000), r.IntN(4), pick(r, "", "", " ", "\n", "\t", ":", "- ", "\"", "'", "#", "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "---\n", "%", "@", "`", "\u0000", "\ufeff", "é", "null", "<<: {a: 1}\n", "\\'", "-\t", "\t\n", "\n\t", " \t", ":\t", "\t#", "?\t", ",\t", "\t- ")}
		out["cuts"] = []any{cut}
	}
	return out
}

// render gives a document's text.
func renderDocument(tree any) (string, bool) {
	document, ok := tree.(map[string]any)
	if !ok || document["tree"] == nil {
		return "", false
	}
	text := yamlText(document["tree"])
	if document["style"] == "json" {
		text = jsonText(document["tree"])
	}
	text = strings.ReplaceAll(text, `\u0000":`, `":`)
	cuts, _ := document["cuts"].([]any)
	for _, each := range cuts {
		cut, _ := each.([]any)
		if text, ok = cutText(text, cut); !ok {
			return "", false
		}
	}
	return text, true
}

// cutText replaces a piece of a text: [position, length, text].
func cutText(text string, cut []any) (string, bool) {
	if len(cut) != 3 || len(text) == 0 {
		return "", false
	}
	position, ok := cut[0].(int)
	length, also := cut[1].(int)
	insert, too := cut[2].(string)
	if !ok || !also || !too {
		return "", false
	}
	position %= len(text)
	return strings.ToValidUTF8(text[:position]+insert+text[min(position+length, len(text)):], "?"), true
}
