package decide

import (
	"os"
	"sync"
)

var scratch = sync.OnceValues(func() (string, error) {
	return os.MkdirTemp("", "navicert-reference-")
})

// Close removes what decisions wrote. No decision may follow.
func Close() {
	if directory, err := scratch(); err == nil {
		os.RemoveAll(directory)
	}
}
