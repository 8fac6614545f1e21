package compare

import "testing"

func TestEachRuleSeesWhatItHasToSeeAndNothingElse(t *testing.T) {
	for _, row := range []struct {
		kind, want, got string
		same            bool
	}{
		{"authn-config", `{"valid":true}`, `{"valid":true,"errors":[]}`, true},
		{"authn-config", `{"valid":false,"stage":"validate","errors":[{"type":"A","field":"x","detail":"1"},{"type":"A","field":"x"}]}`, `{"valid":false,"errors":[{"type":"A","field":"x","detail":"2"}]}`, true},
		{"authn-config", `{"valid":false,"stage":"validate","errors":[{"type":"A","field":"x"}]}`, `{"valid":false,"errors":[{"type":"A","field":"y"}]}`, false},
		{"authn-config", `{"valid":false,"stage":"decode"}`, `{"valid":true}`, false},
		{"authn-token", `{"outcome":"rejected","error":"a"}`, `{"outcome":"rejected","error":"b"}`, true},
		{"authn-token", `{"outcome":"rejected"}`, `{"outcome":"no-opinion"}`, false},
		{"authn-token", `{"outcome":"authenticated","user":{"username":"a","uid":"","groups":["x","y"],"extra":{}}}`, `{"outcome":"authenticated","user":{"username":"a","uid":"","groups":["y","x"],"extra":{}}}`, false},
		{"cel", `{"compiled":true,"ok":true,"type":"int","value":9007199254740993}`, `{"compiled":true,"ok":true,"type":"int","value":9007199254740992}`, false},
		{"cel", `{"compiled":true,"ok":true,"type":"list","value":[1,2.5]}`, `{"compiled":true,"ok":true,"type":"list","value":[1.0,2.50]}`, true},
		{"cel", `{"compiled":true,"ok":true,"type":"bool","value":true,"cost":1}`, `{"compiled":true,"ok":true,"type":"bool","value":true,"cost":9}`, true},
		{"cel", `{"compiled":true,"ok":true,"type":"bool","value":true}`, `{"fault":"no"}`, false},
		{"exec-output", `{"ok":true,"token":"t","hasCert":false}`, `{"ok":true,"token":"t","hasCert":false,"expires":null}`, true},
		{"image-response", `{"ok":true,"cacheDuration":"1h0m0s","auth":{}}`, `{"ok":true,"cacheDuration":"60m","auth":{}}`, true},
		{"image-response", `{"ok":true,"cacheDuration":null,"auth":{}}`, `{"ok":true,"cacheDuration":"0s","auth":{}}`, false},
		{"image-keyring", `{"credentials":[],"error":"x"}`, `{"credentials":[]}`, false},
		{"kubeconfig", `{"loads":true,"valid":true,"merged":{"a":null,"b":[]},"errors":[]}`, `{"loads":true,"valid":true,"merged":{},"errors":[]}`, true},
		{"kubeconfig", `{"loads":true,"valid":true,"merged":{"a":""},"errors":[]}`, `{"loads":true,"valid":true,"merged":{},"errors":[]}`, false},
		{"kubeconfig", `{"loads":true,"valid":true,"redacted":{"a":"REDACTED","b":"x"},"errors":[]}`, `{"loads":true,"valid":true,"redacted":{"a":"REDACTED","b":"REDACTED"},"errors":[]}`, true},
		{"kubeconfig", `{"loads":true,"valid":true,"redacted":{"a":"REDACTED"},"errors":[]}`, `{"loads":true,"valid":true,"redacted":{"a":"s3cret"},"errors":[]}`, false},
		{"kubeconfig", `{"loads":true,"valid":true,"errors":[],"client":{"build_error":"x"}}`, `{"loads":true,"valid":true,"errors":[],"client":{"server":"s"}}`, false},
		{"unheard-of", `{}`, `{}`, false},
	} {
		want, err := Decode([]byte(row.want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode([]byte(row.got))
		if err != nil {
			t.Fatal(err)
		}
		if difference := Answers(row.kind, want, got); (difference == "") != row.same {
			t.Errorf("%s: %s and %s: %q", row.kind, row.want, row.got, difference)
		}
	}
}
