package main

import (
	"maps"
	"slices"
	"sort"
)

const (
	shrinkRounds = 300
	// One run of the other side answers so many candidates.
	shrinkChunk = 48
)

// shrink looks for the smallest question that still disagrees about the same member.
func shrink(generator generator, sides sides, expected []deliberate, found *question) (*question, error) {
	best, tried := found, map[string]bool{}
	for range shrinkRounds {
		next, err := smallerQuestion(generator, sides, expected, best, tried)
		if err != nil || next == nil {
			return best, err
		}
		best = next
	}
	return best, nil
}

// smallerQuestion gives one that is smaller and disagrees alike, or nothing.
func smallerQuestion(generator generator, sides sides, expected []deliberate, best *question, tried map[string]bool) (*question, error) {
	var candidates []*question
	for _, tree := range smaller(best.tree) {
		input, ok := generator.render(tree)
		if !ok || size(input) >= size(best.input) || tried[text(input)] {
			continue
		}
		tried[text(input)] = true
		candidates = append(candidates, &question{index: best.index, tree: tree, input: input})
	}
	// What is much smaller comes first: a round that succeeds with it saves many.
	sort.SliceStable(candidates, func(i, j int) bool { return size(candidates[i].input) < size(candidates[j].input) })
	for chunk := range slices.Chunk(candidates, shrinkChunk) {
		if err := sides.ask(chunk); err != nil {
			return nil, err
		}
		for _, candidate := range chunk {
			if candidate.difference != "" && !candidate.panicked() && member(candidate.difference) == member(best.difference) && match(expected, candidate) == "" {
				return candidate, nil
			}
		}
	}
	return nil, nil
}

func size(input map[string]any) int { return len(text(input)) }

// smaller lists trees that are one step smaller. A tree is JSON, with `node` for expressions and `raw` for YAML scalars.
func smaller(tree any) []any {
	switch tree := tree.(type) {
	case map[string]any:
		return smallerObjects(tree)
	case []any:
		return smallerLists(tree)
	case string:
		return smallerTexts(tree)
	case node:
		return smallerNodes(tree)
	case int:
		if tree != 0 {
			return []any{0, tree / 2}
		}
	}
	return nil
}

func smallerObjects(object map[string]any) []any {
	var out []any
	names := slices.Sorted(maps.Keys(object))
	for _, name := range names {
		less := maps.Clone(object)
		delete(less, name)
		out = append(out, less)
	}
	for _, name := range names {
		for _, child := range smaller(object[name]) {
			other := maps.Clone(object)
			other[name] = child
			out = append(out, other)
		}
	}
	return out
}

func smallerLists(list []any) []any {
	var out []any
	if half := len(list) / 2; half > 0 {
		out = append(out, slices.Clone(list[:half]), slices.Clone(list[half:]))
	}
	for index := range list {
		out = append(out, slices.Delete(slices.Clone(list), index, index+1))
	}
	for index, element := range list {
		for _, child := range smaller(element) {
			other := slices.Clone(list)
			other[index] = child
			out = append(out, other)
		}
	}
	return out
}

func smallerTexts(text string) []any {
	letters := []rune(text)
	if len(letters) == 0 {
		return nil
	}
	out := []any{""}
	if half := len(letters) / 2; half > 0 {
		out = append(out, string(letters[:half]), string(letters[half:]))
	}
	if len(letters) <= 40 {
		for index := range letters {
			out = append(out, string(slices.Delete(slices.Clone(letters), index, index+1)))
		}
	}
	return out
}

func smallerNodes(expression node) []any {
	var out []any
	for _, child := range expression.children {
		out = append(out, child)
	}
	for index, child := range expression.children {
		for _, less := range smaller(child) {
			other := node{expression.template, slices.Clone(expression.children)}
			other.children[index] = less.(node)
			out = append(out, other)
		}
	}
	if len(expression.children) > 0 {
		for _, leaf := range []string{"true", "1", `"a"`, "[]"} {
			out = append(out, node{template: leaf})
		}
	}
	return out
}
