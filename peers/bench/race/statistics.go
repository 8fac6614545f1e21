package main

import (
	"fmt"
	"slices"
)

// rounds is how many rounds count. Odd, so that the median is a round that was measured; bench/src/race.rs says why so many.
const rounds = 11

// warmUp is how many rounds come before them and never count.
const warmUp = 1

// summary is the median and the range of some values; no value is left out.
type summary struct{ median, least, most float64 }

// summarize expects at least one value.
func summarize(values []float64) summary {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + median) / 2
	}
	return summary{median, sorted[0], sorted[len(sorted)-1]}
}

func (s summary) spread() string { return fmt.Sprintf("%.2f–%.2f", s.least, s.most) }

// result is what the rounds of one row came to: each side's median by itself, and the ratios of the first two sides (Go /
// navicert), taken within each round, so that what slows a whole round cancels.
type result struct {
	sides  []measurement
	ratios *summary
}

// measure lets the sides take turns, in reverse order in every second round. The number of rounds does not depend on what comes out.
func measure(row string, sides ...side) (result, error) {
	samples := make([][]measurement, len(sides))
	for round := range warmUp + rounds {
		for turn := range sides {
			index := turn
			if round%2 == 1 {
				index = len(sides) - 1 - turn
			}
			got, err := sides[index](row)
			if err != nil {
				return result{}, err
			}
			if round >= warmUp && got.There {
				samples[index] = append(samples[index], got)
			}
		}
	}
	var out result
	for _, side := range samples {
		// A side has a row or not: one that answers in some rounds only is broken.
		if len(side) != 0 && len(side) != rounds {
			return result{}, fmt.Errorf("measured in %d rounds of %d", len(side), rounds)
		}
		out.sides = append(out.sides, medians(side))
	}
	if len(sides) >= 2 && out.sides[0].There && out.sides[1].There {
		var ratios []float64
		for round := range rounds {
			ratios = append(ratios, samples[0][round].Nanoseconds/samples[1][round].Nanoseconds)
		}
		of := summarize(ratios)
		out.ratios = &of
	}
	return out, nil
}

// medians is each figure's median; a side without samples does not have the row.
func medians(samples []measurement) measurement {
	if len(samples) == 0 {
		return measurement{}
	}
	of := func(figure func(measurement) float64) float64 {
		var values []float64
		for _, sample := range samples {
			values = append(values, figure(sample))
		}
		return summarize(values).median
	}
	return measurement{
		Nanoseconds: of(func(m measurement) float64 { return m.Nanoseconds }),
		Allocations: of(func(m measurement) float64 { return m.Allocations }),
		Bytes:       of(func(m measurement) float64 { return m.Bytes }),
		There:       true,
	}
}
