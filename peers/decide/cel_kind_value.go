package decide

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// kindValue writes a value as an object with one member, which is its kind.
func kindValue(value ref.Val) map[string]any {
	switch value := value.(type) {
	case types.Null:
		return map[string]any{"null": nil}
	case types.Bool:
		return map[string]any{"bool": bool(value)}
	case types.Int:
		return map[string]any{"int": strconv.FormatInt(int64(value), 10)}
	case types.Uint:
		return map[string]any{"uint": strconv.FormatUint(uint64(value), 10)}
	case types.Double:
		return map[string]any{"double": kindDouble(float64(value))}
	case types.String:
		return map[string]any{"string": string(value)}
	case types.Bytes:
		return map[string]any{"bytes": base64.StdEncoding.EncodeToString(value)}
	case types.Timestamp:
		return map[string]any{"timestamp": moment(value.Unix(), int64(value.Nanosecond()))}
	case types.Duration:
		return map[string]any{"duration": moment(int64(value.Duration/time.Second), int64(value.Duration%time.Second))}
	case *types.Type:
		return map[string]any{"type": value.TypeName()}
	case *types.Optional:
		if !value.HasValue() {
			return map[string]any{"optional": nil}
		}
		return map[string]any{"optional": kindValue(value.GetValue())}
	}
	switch value.Type().TypeName() {
	case "list":
		list := []any{}
		for each := value.(traits.Lister).Iterator(); each.HasNext() == types.True; {
			list = append(list, kindValue(each.Next()))
		}
		return map[string]any{"list": list}
	case "map":
		entries := [][2]any{}
		mapping := value.(traits.Mapper)
		for each := mapping.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			entries = append(entries, [2]any{kindValue(key), kindValue(mapping.Get(key))})
		}
		return map[string]any{"map": sortedEntries(entries)}
	}
	return map[string]any{"opaque": fmt.Sprintf("%T %v", value, value.Value())}
}

func moment(seconds, nanos int64) map[string]any {
	return map[string]any{"seconds": strconv.FormatInt(seconds, 10), "nanos": nanos}
}

func kindDouble(value float64) string {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 1):
		return "Infinity"
	case math.IsInf(value, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// readValue reads what kindValue writes, as far as the suite binds it to variables.
func readValue(object map[string]any) (any, error) {
	for kind, inner := range object {
		text, _ := inner.(string)
		switch kind {
		case "null":
			return types.NullValue, nil
		case "bool":
			return inner, nil
		case "int":
			return strconv.ParseInt(text, 10, 64)
		case "uint":
			return strconv.ParseUint(text, 10, 64)
		case "double":
			return strconv.ParseFloat(text, 64)
		case "string":
			return text, nil
		case "bytes":
			return base64.StdEncoding.DecodeString(text)
		case "list":
			return readList(inner)
		case "map":
			return readMap(inner)
		case "timestamp", "duration":
			return readMoment(kind, inner)
		}
		return nil, fmt.Errorf("no variable has a value of kind `%s`", kind)
	}
	return nil, errors.New("a value without a kind")
}

func readList(inner any) (any, error) {
	items, _ := inner.([]any)
	out := make([]any, 0, len(items))
	for _, each := range items {
		object, _ := each.(map[string]any)
		value, err := readValue(object)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

func readMap(inner any) (any, error) {
	entries, _ := inner.([]any)
	out := map[any]any{}
	for _, each := range entries {
		pair, _ := each.([]any)
		if len(pair) != 2 {
			return nil, errors.New("an entry of a map is a key and a value")
		}
		name, _ := pair[0].(map[string]any)
		key, err := readValue(name)
		if err != nil {
			return nil, err
		}
		object, _ := pair[1].(map[string]any)
		if out[key], err = readValue(object); err != nil {
			return nil, err
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(convertMap(out)), nil
}

// convertMap gives cel-go a map of its own values, whose keys may be of several types.
func convertMap(entries map[any]any) map[ref.Val]ref.Val {
	out := map[ref.Val]ref.Val{}
	for key, value := range entries {
		out[types.DefaultTypeAdapter.NativeToValue(key)] = types.DefaultTypeAdapter.NativeToValue(value)
	}
	return out
}

func readMoment(kind string, inner any) (any, error) {
	object, _ := inner.(map[string]any)
	text, _ := object["seconds"].(string)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	nanos, err := strconv.ParseInt(fmt.Sprint(object["nanos"]), 10, 64)
	if err != nil {
		return nil, err
	}
	if kind == "timestamp" {
		return time.Unix(seconds, nanos).UTC(), nil
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos), nil
}
