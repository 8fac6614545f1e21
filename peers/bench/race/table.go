package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// row is one line of the table: its name is the contract, its title is for people, and recorded is what the reference needed when
// the vectors were made, where they have that row.
type row struct {
	name, title string
	// recorded is time, allocations and bytes as the vectors' README has them.
	recorded string
}

var rows = []row{
	{"token-rs256-map", "RS256-2048, mappings only", "121 µs, 278, 23 KB"},
	{"token-rs256-cel", "RS256-2048, CEL", "219 µs, 596, 37 KB"},
	{"token-es256-map", "ES256, mappings only", "157 µs, 290, 22 KB"},
	{"token-es256-cel", "ES256, CEL", "226 µs, 608, 36 KB"},
	{"verify-rsa2048", "bare RSA-2048 verification", "34 µs"},
	{"verify-p256", "bare P-256 verification", "83 µs"},
	{"load-1", "loading 1 CEL authenticator", "5.1 ms, 17k"},
	{"load-16", "loading 16 CEL authenticators", "72 ms, 221k"},
	{"load-64", "loading 64 CEL authenticators", "283 ms, 876k"},
	{"token-cache-hit", "token cache hit", "1.5 µs, 3, 60 B"},
	{"cel-claim", "CEL: one claim", "979 ns, 8"},
	{"cel-and", "CEL: == and endsWith", "2.73 µs, 18"},
	{"cel-exists", "CEL: split, exists", "5.25 µs, 35"},
	{"cel-map", "CEL: map with prefix", "7.60 µs, 60"},
	{"cel-all", "CEL: user.groups.all", "4.66 µs, 26"},
	{"cel-has", "CEL: difference, has", "2.82 µs, 22"},
	{"cel-matches", "CEL: matches", "1.85 µs, 12"},
	{"cel-optional", "CEL: optional", "1.57 µs, 13"},
	{"exec-run", "exec plugin run (static C plugin)", "0.86 ms, 98"},
	{"exec-spawn", "of which bare spawn", "0.76 ms, 49"},
	{"exec-cached", "cached exec credential per request", "290 ns, 2, 40 B"},
	{"kubeconfig-load", "kubeconfig of 1,000 contexts: load, resolve one", "—"},
	{"image-cached-1", "image provider, cached answer, 1 provider", "3.0 µs, 21"},
	{"image-cached-10", "image provider, cached answer, 10 providers", "33 µs, 174"},
	{"image-cached-100", "image provider, cached answer, 100 providers", "325 µs, 1704"},
	{"image-match-exact", "image pattern match, exact", "1.2 µs, 8, 0.5 KB"},
	{"image-match-glob", "image pattern match, glob", "1.6 µs, 8, 0.7 KB"},
	{"keyring-1000", "keyring lookup over 1,000 entries", "1.3 ms, 8001, 539 KB"},
}

// table collects the lines.
type table struct {
	lines []string
	floor []string
	// ratios are Go / navicert by row, in the median.
	ratios map[string]float64
}

func newTable() *table { return &table{ratios: map[string]float64{}} }

func (t *table) add(row row, got result) {
	golang, ours, floor := got.sides[0], got.sides[1], got.sides[2]
	ratio, spread := "—", "—"
	if got.ratios != nil {
		t.ratios[row.name] = got.ratios.median
		ratio, spread = fmt.Sprintf("%.2f", got.ratios.median), got.ratios.spread()
	}
	t.lines = append(t.lines, strings.Join([]string{row.title, row.recorded, golang.time(), golang.count(), golang.size(), ours.time(), ours.count(), ours.size(), ratio, spread}, "\t| "))
	if floor.There {
		t.floor = append(t.floor, fmt.Sprintf("%s with OpenSSL: %s", row.title, floor.time()))
	}
}

// String writes the table as Markdown that also reads well as it is.
func (t *table) String() string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	head := []string{"work", "recorded", "Go", "allocations", "bytes", "navicert", "allocations", "bytes", "Go / navicert", "spread"}
	fmt.Fprintln(columns, "| "+strings.Join(head, "\t| ")+"\t|")
	fmt.Fprintln(columns, "|"+strings.Repeat(" ---\t|", len(head)))
	for _, line := range t.lines {
		fmt.Fprintln(columns, "| "+line+"\t|")
	}
	columns.Flush()
	for _, line := range t.floor {
		fmt.Fprintln(&out, "\n"+line)
	}
	return out.String()
}

func (m measurement) time() string {
	if !m.There {
		return "—"
	}
	return scaled(m.Nanoseconds, []string{"ns", "µs", "ms", "s"}, 1000)
}

func (m measurement) count() string {
	if !m.There {
		return "—"
	}
	return fmt.Sprintf("%.0f", m.Allocations)
}

func (m measurement) size() string {
	if !m.There {
		return "—"
	}
	return scaled(m.Bytes, []string{"B", "KB", "MB", "GB"}, 1000)
}

// scaled writes three significant digits.
func scaled(value float64, units []string, step float64) string {
	for len(units) > 1 && value >= step {
		value, units = value/step, units[1:]
	}
	return fmt.Sprintf("%.3g %s", value, units[0])
}
