package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Numbers stay as they came.
type item map[string]any

// UnmarshalJSON keeps numbers as text.
func (i *item) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(i))
}

// values uses the json tags. The state "all" is not a condition.
func values(of any) (members item, err error) {
	encoded, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(encoded, &members)
	}
	if err != nil {
		return nil, usage(fmt.Sprintf("read flags: %v", err))
	}
	if members["state"] == "all" {
		delete(members, "state")
	}
	return members, nil
}

func (i item) object(name string) item {
	object, _ := i[name].(map[string]any)
	return object
}

func (i item) items(name string) (items []item) {
	all, _ := i[name].([]any)
	for _, one := range all {
		if object, is := one.(map[string]any); is {
			items = append(items, object)
		}
	}
	return items
}

func (i item) member(path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		return i.object(name).member(rest)
	}
	return i[name]
}

func (i item) text(path string) string {
	if value := i.member(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}

func (i item) time(path string) time.Time {
	at, _ := time.Parse(time.RFC3339, i.text(path))
	return at
}

func (i item) bytes(path string) []byte {
	decoded, _ := base64.StdEncoding.DecodeString(i.text(path))
	return decoded
}

func (i item) isSet(path string) bool {
	value := i.member(path)
	return value != nil && value != false && value != "" && value != json.Number("0")
}
