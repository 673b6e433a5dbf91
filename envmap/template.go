package envmap

import (
	"strconv"
	"strings"
)

// Fields returns the names that a template of TorchOptions.Set may contain in braces, as in
// "tcp://{master_addr}:{master_port}". "{{" and "}}" stand for single braces.
func Fields() []string {
	return []string{
		"rank", "world_size", "local_rank", "local_world_size", "node_rank", "nodes", "node_addr",
		"master_addr", "master_port", "device", "ifname",
	}
}

// requested returns the variables that the user requested as NAME=TEMPLATE entries.
func requested(set []string, id Identity, device device) (variables []KV, err error) {
	values := map[string]string{
		"rank": itoa(id.Rank), "world_size": itoa(id.WorldSize),
		"local_rank": itoa(device.localRank), "local_world_size": itoa(id.LocalWorldSize),
		"node_rank": itoa(id.NodeRank), "nodes": itoa(id.Nodes),
		"node_addr":   id.NodeAddr,
		"master_addr": id.MasterAddr, "master_port": itoa(id.MasterPort),
		"device": "", "ifname": id.Interface,
	}
	if device.index != Unknown {
		values["device"] = itoa(device.index)
	}
	for _, entry := range set {
		name, template, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, &Error{Text: "cannot set " + strconv.Quote(entry) + ": not NAME=TEMPLATE"}
		}
		if strings.ContainsRune(entry, 0) {
			return nil, &Error{Text: "cannot set " + name + ": it contains a NUL byte"}
		}
		value, err := fill(template, values)
		if err != nil {
			return nil, &Error{
				Text: "cannot set " + name + ": " + err.Error(),
				Hint: "known fields are {" + strings.Join(Fields(), "} {") +
					"}; write {{ and }} for braces",
			}
		}
		variables = append(variables, KV{name, value})
	}
	return variables, nil
}

// fill replaces each {field} of a template by its value.
func fill(template string, values map[string]string) (string, error) {
	var b strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			b.WriteByte(rest[0])
			rest = rest[2:]
			continue
		}
		field, after, closed := strings.Cut(rest[1:], "}")
		if rest[0] == '}' || !closed {
			brace := strconv.Quote(rest[:1])
			return "", &Error{Text: "unmatched " + brace + " in " + strconv.Quote(template)}
		}
		value, known := values[field]
		if !known {
			return "", &Error{Text: "unknown field {" + field + "}"}
		}
		b.WriteString(value)
		rest = after
	}
	return b.String(), nil
}
