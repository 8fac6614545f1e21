// Command reference answers questions with Kubernetes' own code: JSON lines in, JSON lines out, a verb per kind.
//
//	reference VERB <lines          one answer per line, in order
//	reference verify DIRECTORY     replays the vector files and counts agreement
//	reference record DIRECTORY     replays them and writes the answers that have changed
//	reference suite DIRECTORY      records the outcomes of the published CEL suite in a directory
//	reference suite-diff A B       lists the differences of two such recordings
//	reference kinds                lists the verbs
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"navicert/peers/decide"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	defer decide.Close()
	if len(arguments) == 0 {
		return usage()
	}
	switch verb := arguments[0]; verb {
	case "kinds":
		for _, kind := range decide.Kinds {
			fmt.Println(kind.Name)
		}
		return 0
	case "verify", "record":
		if len(arguments) != 2 {
			return usage()
		}
		if verb == "record" {
			return record(arguments[1])
		}
		return verify(arguments[1])
	case "suite":
		return suite(arguments[1:])
	case "suite-diff":
		return compareSuite(arguments[1:])
	default:
		kind, ok := decide.Find(verb)
		if !ok || len(arguments) > 1 {
			return usage()
		}
		if err := answerLines(os.Stdin, os.Stdout, kind); err != nil {
			fmt.Fprintln(os.Stderr, "reference:", err)
			return 1
		}
		return 0
	}
}

func usage() int {
	fmt.Fprint(os.Stderr, "usage: reference VERB <lines | reference verify|record VECTOR-DIRECTORY | reference suite DIRECTORY | reference kinds\nverbs:")
	for _, kind := range decide.Kinds {
		fmt.Fprint(os.Stderr, " ", kind.Name)
	}
	fmt.Fprintln(os.Stderr)
	return 2
}

// answerLines gives one line per line. A bad line is a fault and does not end the run.
func answerLines(in io.Reader, out io.Writer, kind decide.Kind) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	written := bufio.NewWriter(out)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			written.Write(answer(line, kind))
			written.WriteByte('\n')
			// A reader at the other end of a pipe may wait for this answer before it asks on.
			if lines.Buffered() == 0 {
				written.Flush()
			}
		}
		if err == io.EOF {
			return written.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func answer(line []byte, kind decide.Kind) []byte {
	var named struct {
		ID json.RawMessage `json:"id"`
	}
	err := json.Unmarshal(line, &named)
	if named.ID == nil {
		named.ID = json.RawMessage("null")
	}
	var decision any
	if err == nil {
		decision, err = kind.Decide(line)
	}
	if err != nil {
		decision = map[string]string{"fault": err.Error()}
	}
	members := marshal(decision)
	return fmt.Appendf(nil, `{"id":%s,%s`, named.ID, members[1:])
}

func marshal(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Appendf(nil, `{"fault":%q}`, err.Error())
	}
	return bytes.TrimSpace(out.Bytes())
}
