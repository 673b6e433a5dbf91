// Package flagname writes flags in place of the fields of agent.Config that texts of the library
// name: "give --nodes N" for "give Config.Nodes N". The library, and the store, have the fields,
// because agents of one job may belong to different programs.
//
// Where such a text leaves this command it passes [In], or [InEvent]. What the user's program has
// written does not pass them.
package flagname

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// otherFlags are the flags of those fields whose names differ. They are a function because each
// start of an agent would make the map.
func otherFlags() map[string]string {
	return map[string]string{
		"AsOpenMPI": "--as openmpi", "Dir": "--chdir", "Etcd": "--store", "Etcd.CA": "--store-ca",
		"Etcd.Cert": "--store-cert", "Etcd.Key": "--store-key", "Etcd.Password": "RDZV_STORE_USER",
		"Etcd.Prefix": "--store-prefix", "Etcd.URLs": "--store", "Etcd.User": "RDZV_STORE_USER",
		"ExportFile": "--export @FILE", "Join": "RDZV_JOIN", "MinNodes": "--nodes MIN:MAX",
		"Networks": "--net", "NoCapture": `--capture "never"`, "PortHigh": "--port-range",
		"PortLow": "--port-range", "ProcsPerNode": "--nproc-per-node", "Restarts.Max": "--max-restarts",
	}
}

// Of is the flag that sets a field: --join-timeout for JoinTimeout.
func Of(field string) string {
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return cmp.Or(otherFlags()[field], "-"+b.String())
}

// Phrases returns phrases of the library with those that replace them in this command, where other
// names are not enough: one flag for two fields, a variable for all ranks, the command itself.
func Phrases() map[string]string {
	return map[string]string{
		"a smaller Config.MinNodes":                           "--nodes a smaller MIN",
		"a Config.MinNodes of more than half of Config.Nodes": "a MIN of more than half of MAX",
		"Config.MinNodes MIN and Config.Nodes ":               "--nodes MIN:",
		"Config.PortLow and Config.PortHigh":                  "--port-range LOW-HIGH",
		"host: Config.Store HOST":                             "host: mpirun -x RDZV_STORE=HOST",
		"name it with Config.Store HOST":                      "name it with mpirun -x RDZV_STORE=HOST",
		"Config.Store HOST for all ranks":                     "RDZV_STORE=HOST for all ranks",
		"Config.Etcd.User and Config.Etcd.Password":           "RDZV_STORE_USER to NAME:PASSWORD",
		"give Config.Nodes N to each of them": "set RDZV_NODES to the number of nodes on each of " +
			"them, or give --nodes N",
		", the same on each node": " -- PROGRAM, the same on each node",
		"PROGRAM with":            "rdzv exec",
		"none uses the field":     "none uses the flag",
	}
}

const (
	// kept matches parts of a text that In does not change: a quoted value, or the user's program.
	kept      = `"(?:[^"\\]|\\.)*"|rdzv exec -- .*`
	nodeRange = `\bConfig\.MinNodes (\d+) and Config\.Nodes (\d+)`
	field     = `\bConfig\.([A-Z]\w*(?:\.[A-Z]\w*)?)`
)

// names is made when a text needs it, see otherFlags.
var names = sync.OnceValue(func() *regexp.Regexp {
	pattern := kept + "|" + nodeRange
	for phrase := range Phrases() {
		pattern += "|" + regexp.QuoteMeta(phrase)
	}
	return regexp.MustCompile(pattern + "|" + field)
})

// In is a text of the library with flags in place of the fields that it names.
func In(text string) string {
	if !strings.Contains(text, "Config.") {
		return text
	}
	return names().ReplaceAllStringFunc(text, func(found string) string {
		switch m := names().FindStringSubmatch(found); {
		case m[1] != "":
			return "--nodes " + m[1] + ":" + m[2]
		case m[3] != "":
			return Of(m[3])
		}
		return cmp.Or(Phrases()[found], found)
	})
}

const (
	jsonString = `"(?:[^"\\]|\\.)*"`
	// jsonTexts are the members of events that hold texts of the library.
	jsonTexts = `"(?:flag|hint|reason|store_lost|text|waiting)":(?:` + jsonString + `|\[(?:` +
		jsonString + `,?)*\])`
)

var jsonParts = sync.OnceValues(func() (texts, each *regexp.Regexp) {
	return regexp.MustCompile(jsonTexts), regexp.MustCompile(jsonString)
})

// InEvent is the JSON form of an event with flags in place of the fields that its texts name.
func InEvent(line []byte) []byte {
	if !strings.Contains(string(line), "Config.") {
		return line
	}
	texts, each := jsonParts()
	return texts.ReplaceAllFunc(line, func(member []byte) []byte {
		return each.ReplaceAllFunc(member, func(b []byte) []byte {
			var text string
			_ = json.Unmarshal(b, &text) // the encoder has made it
			var flags bytes.Buffer
			e := json.NewEncoder(&flags)
			e.SetEscapeHTML(false) // as the encoder of the event
			_ = e.Encode(In(text))
			return bytes.TrimSpace(flags.Bytes())
		})
	})
}
