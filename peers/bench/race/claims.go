package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// claim is a promise about median ratios (Go / navicert): each of its rows reaches least, and their geometric mean reaches mean.
type claim struct {
	title string
	rows  []string
	// least and mean are 0 where nothing is promised.
	least, mean float64
}

var claims = []claim{
	{"the eight CEL expressions", celRows(), 7, 10},
	{"RS256 + CEL", []string{"token-rs256-cel"}, 8, 0},
	{"ES256 + CEL", []string{"token-es256-cel"}, 3, 0},
	{"loading 64 authenticators", []string{"load-64"}, 10, 0},
	{"keyring of 1,000", []string{"keyring-1000"}, 500, 0},
}

func celRows() []string {
	var out []string
	for _, row := range rows {
		if strings.HasPrefix(row.name, "cel-") {
			out = append(out, row.name)
		}
	}
	return out
}

// verdicts says of every claim whether the ratios bear it out; a claim with a row that was not measured is left open. The
// second result is false if a claim is broken.
func verdicts(ratios map[string]float64) (string, bool) {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(columns, "| claim\t| promised\t| measured\t| verdict\t|")
	fmt.Fprintln(columns, "| ---\t| ---\t| ---\t| ---\t|")
	all := true
	for _, claim := range claims {
		worst, mean, known := claim.measure(ratios)
		line := func(title, what string, promised, measured float64) {
			if promised == 0 {
				return
			}
			if !known {
				fmt.Fprintf(columns, "| %s%s\t| ≥ %g ×\t| —\t| not measured\t|\n", title, what, promised)
				return
			}
			verdict := "holds"
			if measured < promised {
				verdict, all = "BROKEN", false
			}
			fmt.Fprintf(columns, "| %s%s\t| ≥ %g ×\t| %.1f ×\t| %s\t|\n", title, what, promised, measured, verdict)
		}
		line(claim.title, ", geometric mean", claim.mean, mean)
		if claim.mean == 0 {
			line(claim.title, "", claim.least, worst)
		} else {
			line(claim.title, ", the least", claim.least, worst)
		}
	}
	columns.Flush()
	return out.String(), all
}

func (c claim) measure(ratios map[string]float64) (worst, mean float64, known bool) {
	worst = math.Inf(1)
	sum := 0.0
	for _, row := range c.rows {
		ratio, measured := ratios[row]
		if !measured {
			return 0, 0, false
		}
		worst = min(worst, ratio)
		sum += math.Log(ratio)
	}
	return worst, math.Exp(sum / float64(len(c.rows))), true
}
