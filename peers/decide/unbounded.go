package decide

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Before 1.37 `lists.range` allocates as many elements as it is asked for, before any cost is counted: the process runs out of memory.
// See docs/upstream/lists-range.md.
var (
	rangeLimited = version.MustParse("1.37")
	largeNumber  = regexp.MustCompile(`[0-9]{8,}|0x[0-9a-fA-F]{6,}|[0-9]e[0-9]|claims\.(exp|iat|nbf|t)\b`)
)

// unbounded gives a fault for an expression that this version must not be asked.
func unbounded(expression string) error {
	if kube().AtLeast(rangeLimited) || !strings.Contains(expression, "lists.range(") || !largeNumber.MatchString(expression) {
		return nil
	}
	return fmt.Errorf("%s: not evaluated: lists.range does not limit its memory in Kubernetes %s", Panicked, Kube)
}
