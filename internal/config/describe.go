package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A Setting describes one variable and its value. Value never shows a secret.
type Setting struct {
	Variable string
	Type     string // duration, integer, bool, text, list or secret
	Value    string
	Default  string
	Required bool
	Limits   string // for people: "1s to 5m", "debug, info, warn, error", "postgres"
	Doc      string
}

// Describe lists the settings of a config, a struct or a pointer to it.
func Describe(cfg any) []Setting {
	var settings []Setting
	for _, f := range fields(reflect.Indirect(reflect.ValueOf(cfg)), "") {
		f.Value = f.show()
		settings = append(settings, f.Setting)
	}
	return settings
}

// LogValue returns the settings as a slog group, secrets masked.
func LogValue(cfg any) slog.Value {
	var attrs []slog.Attr
	for _, s := range Describe(cfg) {
		attrs = append(attrs, slog.String(s.Variable, s.Value))
	}
	return slog.GroupValue(attrs...)
}

func (f *field) show() string {
	switch value := f.value.Interface().(type) {
	case Secret:
		if f.tag.Get("format") == "postgres" {
			return MaskURL(value.Reveal())
		}
		return value.String()
	case []string, []netip.Prefix:
		text := fmt.Sprint(value)
		return strings.ReplaceAll(text[1:len(text)-1], " ", ",") // entries have no blanks
	case time.Duration:
		return Duration(value)
	default:
		return fmt.Sprint(value)
	}
}

// Duration returns the duration as people write it: 336h, not 336h0m0s.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func typeOf(value reflect.Value) string {
	switch value.Interface().(type) {
	case Secret:
		return "secret"
	case time.Duration:
		return "duration"
	case []string, []netip.Prefix:
		return "list"
	case bool:
		return "bool"
	}
	if value.CanInt() {
		return "integer"
	}
	return "text"
}

func limitsOf(tag reflect.StructTag, value reflect.Value) string {
	bounds := ""
	switch lowest, highest := tag.Get("min"), tag.Get("max"); {
	case lowest != "" && highest != "":
		bounds = lowest + " to " + highest
	case lowest != "":
		bounds = "from " + lowest
	case highest != "":
		bounds = "up to " + highest
	}
	if bounds != "" && value.Kind() == reflect.String {
		bounds += " bytes"
	}
	parts := []string{bounds, strings.ReplaceAll(tag.Get("oneof"), " ", ", "), tag.Get("format")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
