package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// goSide runs one benchmark of the compiled test binary on one core.
func goSide(benchmarks, inputs, plugin, length string) side {
	return func(row string) (measurement, error) {
		command := exec.Command(benchmarks, "-test.run=^$", "-test.bench=^BenchmarkRow$/^"+row+"$", "-test.cpu=1", "-test.benchtime="+length,
			"-inputs", inputs, "-plugin", plugin)
		command.Stderr = os.Stderr
		text, err := command.Output()
		if err != nil {
			return measurement{}, fmt.Errorf("%w: %s", err, text)
		}
		return parseGo(string(text))
	}
}

// parseGo reads `BenchmarkRow/name  N  1.0 ns/op  0.9 cpu-ns/op  2 B/op  3 allocs/op`; the CPU time counts where there is one.
func parseGo(text string) (measurement, error) {
	var out measurement
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "BenchmarkRow/") {
			continue
		}
		for index := 2; index+1 < len(words); index += 2 {
			value, err := strconv.ParseFloat(words[index], 64)
			if err != nil {
				return out, err
			}
			switch words[index+1] {
			case "ns/op":
				if !out.There {
					out.Nanoseconds, out.There = value, true
				}
			case "cpu-ns/op":
				out.Nanoseconds, out.There = value, true
			case "B/op":
				out.Bytes = value
			case "allocs/op":
				out.Allocations = value
			}
		}
	}
	return out, nil
}

// ourSide runs `PROGRAM --json ROW` and reads the line {"row": ROW, "ns": …, "allocations": …, "bytes": …}. A program that is
// not there, or that prints no such line, has no such row.
func ourSide(program string) side {
	absent := map[string]bool{}
	return func(row string) (measurement, error) {
		if program == "" || absent[row] {
			return measurement{}, nil
		}
		text, err := exec.Command(program, "--json", row).Output()
		var exit *exec.ExitError
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &exit) {
			return measurement{}, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			var line struct {
				Row string `json:"row"`
				measurement
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Row == row && line.Nanoseconds > 0 {
				line.There = true
				return line.measurement, nil
			}
		}
		absent[row] = true
		return measurement{}, nil
	}
}

// opensslSide is a floor for the two bare verifications, where the program is installed.
func opensslSide() side {
	algorithms := map[string]string{"verify-rsa2048": "rsa2048", "verify-p256": "ecdsap256"}
	return func(row string) (measurement, error) {
		algorithm, ok := algorithms[row]
		if !ok {
			return measurement{}, nil
		}
		text, err := exec.Command("openssl", "speed", "-seconds", "1", "-mr", algorithm).Output()
		if err != nil {
			return measurement{}, nil
		}
		// +F2:…:bits:signatures per second:verifications per second
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) != 5 || !strings.HasPrefix(line, "+F") {
				continue
			}
			if rate, err := strconv.ParseFloat(fields[4], 64); err == nil && rate > 1 {
				return measurement{Nanoseconds: 1e9 / rate, There: true}, nil
			}
		}
		return measurement{}, nil
	}
}
