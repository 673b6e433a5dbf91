package frames

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Texts are several texts without NUL, which need not be valid UTF-8.
type Texts []string

func (t Texts) MarshalJSON() ([]byte, error) {
	var all bytes.Buffer
	for _, s := range t {
		all.WriteString(s)
		all.WriteByte(0)
	}
	return json.Marshal(all.Bytes())
}

func (t *Texts) UnmarshalJSON(b []byte) error {
	var all []byte
	if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
		return err
	}
	list, found := strings.CutSuffix(string(all), "\x00")
	if !found {
		return errors.New("a list of texts has no end")
	}
	*t = strings.Split(list, "\x00")
	return nil
}
