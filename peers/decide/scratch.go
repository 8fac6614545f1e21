package decide

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const catPath = "/bin/cat"

var scratch = sync.OnceValues(func() (string, error) {
	return os.MkdirTemp("", "navicert-reference-")
})

// Close removes what decisions wrote. No decision may follow.
func Close() {
	if directory, err := scratch(); err == nil {
		os.RemoveAll(directory)
	}
}

// scratchFile writes a text to a file of this process that the next call with the same name overwrites.
func scratchFile(name, text string) (string, error) {
	directory, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("scratch file: %w", err)
	}
	return path, nil
}
