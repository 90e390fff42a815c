package config

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Format is a rule for text, named by the tag "format".
type Format string

// The formats that code uses.
const (
	FormatAddress Format = "address"
	FormatListen  Format = "listen"
	FormatURL     Format = "url"
)

var formats = map[Format]struct {
	is string // in words
	ok func(text string) bool
}{
	FormatAddress: {"host:port (an IPv6 address goes in brackets)", isAddress},
	FormatListen:  {"host:port to listen on; :port is every interface", isListen},
	FormatURL:     {"http:// or https:// with a host, without user, query and fragment", isURL},
	"host":        {"the name of a host or an IP address", isHost},
	"token":       {"printable ASCII without blanks", regexp.MustCompile(`^[!-~]*$`).MatchString},
	"name": {
		"a to z, 0 to 9 and inner hyphens, at most 63 characters",
		regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString,
	},
	"mail": {"a mail address", func(text string) bool {
		_, err := mail.ParseAddress(text)
		return err == nil
	}},
	"network": {"a network such as 10.0.0.0/8 or fd00::/8, with no bit set after its prefix", func(text string) bool {
		network, err := netip.ParsePrefix(text)
		isAll := network.Bits() == 0
		isMapped := network.Addr().Is4In6() // an IPv4 client is in none of these
		return err == nil && network.Masked() == network && !isAll && !isMapped
	}},
	"pem": {"PEM", func(text string) bool {
		block, _ := pem.Decode([]byte(text))
		return block != nil
	}},
	"postgres": {"postgres://user:password@host:port/database (percent-encode special characters)", isPostgres},
}

var hostName = regexp.MustCompile(`^[\w.-]+$`)

// Check returns the mistake in a text, without the text; empty: none.
func (f Format) Check(text string) string {
	if f == "" || formats[f].ok(text) {
		return ""
	}
	return "is not " + formats[f].is
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || hostName.MatchString(text)
}

func isListen(text string) bool {
	host, port, err := net.SplitHostPort(text)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && (host == "" || isHost(host))
}

func isAddress(text string) bool {
	return isListen(text) && !strings.HasPrefix(text, ":") && !strings.HasSuffix(text, ":0")
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isHost(u.Hostname()) &&
		(u.Port() == "" || isListen(u.Host)) && !strings.ContainsAny(text, "@?# ")
}

func isPostgres(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || strings.Trim(u.Path, "/") == "" ||
		u.Host == "" && !u.Query().Has("host") || strings.Contains(text, "#") {
		return false
	}
	_, err = pgxpool.ParseConfig(text)
	return err == nil
}

func (f *field) check(text string, words []string) error {
	format := Format(f.tag.Get("format"))
	visible := text
	if format == "pem" {
		visible = strings.Join(strings.Fields(text), " ") // the only values with lines
	}
	switch {
	case text == "":
		return errors.New("is set to nothing; unset it or give it a value")
	case strings.TrimSpace(visible) != visible, !utf8.ValidString(visible),
		strings.ContainsFunc(visible, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return errors.New("has blanks or line ends around it, or characters that do not show")
	case len(text) > 1 && text[0] == text[len(text)-1] && (text[0] == '"' || text[0] == '\''):
		return errors.New("has quotes around it, which would become part of it")
	case len(words) > 0 && !slices.Contains(words, text):
		return errors.New("is not one of " + strings.Join(words, ", "))
	case f.Type == "list":
		return format.checkList(strings.Split(text, ","))
	}
	if wrong := format.Check(text); wrong != "" {
		return errors.New(wrong)
	}
	return f.checkBounds(text)
}

// An entry may be a password, so its place names it.
func (f Format) checkList(entries []string) error {
	var bad []string
	for i, entry := range entries {
		if wrong := f.Check(entry); wrong != "" || entry == "" {
			bad = append(bad, fmt.Sprintf("entry %d %s", i+1, cmp.Or(wrong, "is empty")))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return errors.New(strings.Join(bad, "; "))
}

func (f *field) checkBounds(text string) error {
	size, err := int64(0), error(nil)
	switch f.Type {
	case "bool":
		_, err = strconv.ParseBool(text)
		return err
	case "text", "secret":
		size = int64(len(text))
	default:
		size, err = f.number(text, f.value.Type().Bits())
	}
	lowest, highest := int64(0), int64(math.MaxInt64)
	if f.Type == "duration" {
		lowest = 1
	}
	if bound, has := f.tag.Lookup("min"); has {
		lowest = f.mustNumber(bound)
	}
	if bound, has := f.tag.Lookup("max"); has {
		highest = f.mustNumber(bound)
	}
	if err == nil && (size < lowest || size > highest) {
		err = errors.New(strings.TrimSuffix("is out of bounds: "+f.Limits, ": "))
	}
	return err
}

func (f *field) number(text string, bits int) (int64, error) {
	if f.Type == "duration" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("unable to parse duration: %w", err)
		}
		return int64(d), nil
	}
	return strconv.ParseInt(text, 10, bits)
}

func (f *field) mustNumber(bound string) int64 {
	number, err := f.number(bound, 64)
	if err != nil {
		panic("config: a bound of " + f.Variable + ": " + err.Error())
	}
	return number
}
