package main

import (
	"math/rand/v2"
	"strings"
)

// random draws what a question is made of.
type random struct{ *rand.Rand }

// newRandom belongs to one question of one seed, so that each can be made again alone.
func newRandom(seed uint64, index int) *random {
	return &random{rand.New(rand.NewPCG(seed, uint64(index)))}
}

// chance is true in so many of a hundred cases.
func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *random, from ...T) T { return from[r.IntN(len(from))] }

// usually is the first value, and in so many of a hundred cases one of the others.
func usually(r *random, percent int, usual any, others ...any) any {
	if r.chance(percent) {
		return pick(r, others...)
	}
	return usual
}

// several draws up to `most` elements.
func several[T any](r *random, most int, draw func() T) []T {
	var out []T
	for range r.IntN(most + 1) {
		out = append(out, draw())
	}
	return out
}

// list makes a tree's list of anything.
func list[T any](elements []T) []any {
	out := make([]any, 0, len(elements))
	for _, element := range elements {
		out = append(out, element)
	}
	return out
}

// oddText is a text that somebody's parser once stumbled over.
func (r *random) oddText() string {
	return pick(r, "", " ", "a b", "\t", "é", "日本", "a\nb", `"`, `'`, `\`, "%", "%zz", "%2F", "#", "null", "true", "yes", "0123", "1e3", "-", "~",
		"system:masters", "a:b", strings.Repeat("x", 300), "\u200b", "a\u0000b", "𝒳", "..", "/", "*", "{}", "[]", "$HOME")
}

// vary changes a member of an object now and then: dropped, of another type, misspelt, or an odd text.
func (r *random) vary(object map[string]any, names ...string) {
	name := pick(r, names...)
	switch r.IntN(6) {
	case 0:
		delete(object, name)
	case 1:
		object[name] = pick[any](r, nil, true, 7, 1.5, []any{}, map[string]any{}, []any{"a"}, "text")
	case 2:
		if value, ok := object[name]; ok {
			delete(object, name)
			object[pick(r, strings.ToUpper(name), name+"s", " "+name, strings.ToUpper(name[:1])+name[1:])] = value
		}
	case 3:
		object[name] = r.oddText()
	case 4:
		object[pick(r, "foo", "extra", "metadata", "x-y", "apiversion", "Kind")] = pick[any](r, nil, "a", 1, []any{1}, map[string]any{"a": 1})
	case 5:
		object[name] = raw(pick(r, "yes", "0123", "1_000", "~", "0x1f", "0b11", ".inf", "1:30", "!!str 5", "2020-01-01", "<<", "&a x", "*a", "|\n  x", "'it''s'", `"\u0041"`))
	}
}

// again marks a member's name as one that stands in the object already; documents are written without the mark.
const again = "\x00"

// repeat gives an object one of its members twice, the second time often as null.
func (r *random) repeat(object map[string]any, names ...string) {
	name := pick(r, names...)
	if value, ok := object[name]; ok {
		object[name+again] = pick[any](r, nil, nil, nil, value, "b.c.d", "", map[string]any{}, map[string]any{"token": nil}, map[string]any{"token": "b.c.d"}, 7)
	}
}
