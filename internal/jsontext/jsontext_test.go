package jsontext

import "testing"

func TestMarshal(t *testing.T) {
	value := map[string]string{"a": "<module> & co"}
	if b, err := Marshal(value); err != nil || string(b) != `{"a":"<module> & co"}` {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := Indent(value); err != nil || string(b) != "{\n  \"a\": \"<module> & co\"\n}\n" {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function has JSON")
	}
}
