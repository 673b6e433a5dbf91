package flags

import "errors"

// Output is the flag -o of a command that prints data; json tells whether that is JSON.
func Output(json *bool) Group {
	return Group{NoEnv: true, Rows: []Row{
		Flag("-o, --output text|json", "print text, or one JSON object (text)", (*asJSON)(json)),
	}}
}

// asJSON is the value of Output.
type asJSON bool

func (v *asJSON) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("must be text or json")
	}
	*v = text == "json"
	return nil
}

func (v *asJSON) String() string {
	if *v {
		return "json"
	}
	return "text"
}

func (v *asJSON) Type() string { return "output" }
