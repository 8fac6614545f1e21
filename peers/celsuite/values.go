package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"cel.dev/expr"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// valueObject writes a value as an object with one member, which is its kind.
func valueObject(value *expr.Value) (object, error) {
	switch kind := value.GetKind().(type) {
	case *expr.Value_NullValue:
		return object{"null": nil}, nil
	case *expr.Value_BoolValue:
		return object{"bool": kind.BoolValue}, nil
	case *expr.Value_Int64Value:
		return object{"int": strconv.FormatInt(kind.Int64Value, 10)}, nil
	case *expr.Value_Uint64Value:
		return object{"uint": strconv.FormatUint(kind.Uint64Value, 10)}, nil
	case *expr.Value_DoubleValue:
		return object{"double": double(kind.DoubleValue)}, nil
	case *expr.Value_StringValue:
		return object{"string": kind.StringValue}, nil
	case *expr.Value_BytesValue:
		return object{"bytes": base64.StdEncoding.EncodeToString(kind.BytesValue)}, nil
	case *expr.Value_TypeValue:
		return object{"type": kind.TypeValue}, nil
	case *expr.Value_EnumValue:
		return object{"enum": object{"type": kind.EnumValue.GetType(), "value": kind.EnumValue.GetValue()}}, nil
	case *expr.Value_ListValue:
		items := []object{}
		for _, each := range kind.ListValue.GetValues() {
			item, err := valueObject(each)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return object{"list": items}, nil
	case *expr.Value_MapValue:
		entries := [][2]object{}
		for _, each := range kind.MapValue.GetEntries() {
			key, err := valueObject(each.GetKey())
			if err != nil {
				return nil, err
			}
			value, err := valueObject(each.GetValue())
			if err != nil {
				return nil, err
			}
			entries = append(entries, [2]object{key, value})
		}
		return object{"map": entries}, nil
	case *expr.Value_ObjectValue:
		return message(kind.ObjectValue)
	default:
		return nil, fmt.Errorf("unknown kind of value %T", kind)
	}
}

// message writes time stamps and durations as values of the language, and every other message as its bytes.
func message(packed *anypb.Any) (object, error) {
	moment := func(seconds int64, nanos int32) object {
		return object{"seconds": strconv.FormatInt(seconds, 10), "nanos": nanos}
	}
	switch name := string(packed.MessageName()); name {
	case "google.protobuf.Timestamp":
		var out timestamppb.Timestamp
		err := packed.UnmarshalTo(&out)
		return object{"timestamp": moment(out.GetSeconds(), out.GetNanos())}, err
	case "google.protobuf.Duration":
		var out durationpb.Duration
		err := packed.UnmarshalTo(&out)
		return object{"duration": moment(out.GetSeconds(), out.GetNanos())}, err
	default:
		return object{"message": object{"type": name, "wire": base64.StdEncoding.EncodeToString(packed.GetValue())}}, nil
	}
}

func double(value float64) string {
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

// typeText writes a type as the checker's tests name it: `list(int)`, `map(string, dyn)`, `~A`.
func typeText(from *expr.Type) string {
	switch kind := from.GetTypeKind().(type) {
	case *expr.Type_Dyn:
		return "dyn"
	case *expr.Type_Null:
		return "null_type"
	case *expr.Type_Error:
		return "error"
	case *expr.Type_Primitive:
		return primitive(kind.Primitive)
	case *expr.Type_Wrapper:
		return "wrapper(" + primitive(kind.Wrapper) + ")"
	case *expr.Type_WellKnown:
		return strings.ToLower(kind.WellKnown.String())
	case *expr.Type_ListType_:
		return "list(" + typeText(kind.ListType.GetElemType()) + ")"
	case *expr.Type_MapType_:
		return "map(" + typeText(kind.MapType.GetKeyType()) + ", " + typeText(kind.MapType.GetValueType()) + ")"
	case *expr.Type_MessageType:
		return kind.MessageType
	case *expr.Type_TypeParam:
		return "~" + kind.TypeParam
	case *expr.Type_Type:
		return "type(" + typeText(kind.Type) + ")"
	case *expr.Type_AbstractType_:
		return kind.AbstractType.GetName() + "(" + strings.Join(typeTexts(kind.AbstractType.GetParameterTypes()), ", ") + ")"
	default:
		return "dyn"
	}
}

func typeTexts(from []*expr.Type) []string {
	out := []string{}
	for _, each := range from {
		out = append(out, typeText(each))
	}
	return out
}

func primitive(kind expr.Type_PrimitiveType) string {
	name := strings.ToLower(kind.String())
	return strings.TrimSuffix(name, "64")
}
