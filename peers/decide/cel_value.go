package decide

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// typeName is the name of a value's type as the vectors write it.
func typeName(value ref.Val) string {
	switch name := value.Type().TypeName(); name {
	case "null_type":
		return "null"
	case "google.protobuf.Duration":
		return "duration"
	case "google.protobuf.Timestamp":
		return "timestamp"
	case "optional_type":
		return "optional"
	default:
		return name
	}
}

// topValue writes a result. Inside containers bytes and types carry a mark, since no type name stands beside them there.
func topValue(value ref.Val) any {
	switch value := value.(type) {
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(value)
	case *types.Type:
		return value.TypeName()
	case types.Null:
		return json.RawMessage("null")
	}
	return nestedValue(value)
}

func nestedValue(value ref.Val) any {
	switch value := value.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(value)
	case types.String:
		return string(value)
	case types.Int:
		return int64(value)
	case types.Uint:
		return uint64(value)
	case types.Double:
		return double(float64(value))
	case types.Bytes:
		return map[string]any{"base64": base64.StdEncoding.EncodeToString(value)}
	case types.Duration:
		return seconds(value.Duration)
	case types.Timestamp:
		return value.UTC().Format(time.RFC3339Nano)
	case *types.Type:
		return map[string]any{"type": value.TypeName()}
	case *types.Optional:
		if !value.HasValue() {
			return map[string]any{"optional": []any{}}
		}
		return map[string]any{"optional": []any{nestedValue(value.GetValue())}}
	}
	switch value.Type().TypeName() {
	case "list":
		return elements(value.(traits.Lister))
	case "map":
		return entries(value.(traits.Mapper))
	case "net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.Quantity", "kubernetes.Semver":
		return fmt.Sprint(value.Value())
	}
	return nil
}

func elements(list traits.Lister) []any {
	out := []any{}
	for each := list.Iterator(); each.HasNext() == types.True; {
		out = append(out, nestedValue(each.Next()))
	}
	return out
}

func entries(mapping traits.Mapper) map[string]any {
	out := map[string]any{}
	for each := mapping.Iterator(); each.HasNext() == types.True; {
		key := each.Next()
		name := ""
		switch key := key.(type) {
		case types.String:
			name = string(key)
		default:
			name = fmt.Sprintf("%s(%v)", typeName(key), key.Value())
		}
		out[name] = nestedValue(mapping.Get(key))
	}
	return out
}

func double(value float64) any {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 1):
		return "+Inf"
	case math.IsInf(value, -1):
		return "-Inf"
	}
	return json.Number(strconv.FormatFloat(value, 'g', -1, 64))
}

// seconds writes a duration as decimal seconds, shortest form.
func seconds(length time.Duration) string {
	sign := ""
	whole, fraction := int64(length)/1e9, int64(length)%1e9
	if length < 0 {
		sign, whole, fraction = "-", -whole, -fraction
	}
	text := fmt.Sprintf("%s%d", sign, whole)
	if fraction != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%09d", fraction), "0")
	}
	return text + "s"
}
