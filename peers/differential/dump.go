package main

import (
	"encoding/json"
	"fmt"
)

// dump prints questions as lines, for whoever wants to look at them or feed them elsewhere.
func dump(settings settings, generator generator) error {
	for index := range settings.count {
		tree := generator.tree(newRandom(settings.seed, index))
		if settings.trees {
			fmt.Println(text(tree))
			continue
		}
		input, ok := generator.render(tree)
		if !ok {
			return fmt.Errorf("question %d of seed %d does not render", index, settings.seed)
		}
		input["id"] = fmt.Sprintf("%s-%d-%d", settings.kind, settings.seed, index)
		line, err := json.Marshal(input)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
