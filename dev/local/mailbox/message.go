package mailbox

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"time"
)

// Message is a mail as the page and /api/messages show it.
type Message struct {
	ID         string    `json:"id"` // counts the mails of this mailbox, also over restarts
	From       string    `json:"from"`
	To         []string  `json:"to"` // the recipients of the envelope, not of the header
	Subject    string    `json:"subject"`
	MessageID  string    `json:"message_id"` // without the angle brackets
	ReceivedAt time.Time `json:"received_at"`
	Text       string    `json:"text"`
	Links      []string  `json:"links"` // the web addresses in the text, in order, each once
}

// envelope is what SMTP says about a mail beside its content.
type envelope struct {
	From       string
	To         []string
	ReceivedAt time.Time
}

// parse reads a mail. What cannot be read as one is shown as it came: the mailbox is there to show what was sent.
func parse(id string, env envelope, raw []byte) Message {
	m := Message{ID: id, From: env.From, To: env.To, ReceivedAt: env.ReceivedAt, Text: string(raw)}
	content, err := mail.ReadMessage(bytes.NewReader(raw))
	if err == nil {
		m.Subject = decodeHeader(content.Header.Get("Subject"))
		m.MessageID = strings.Trim(content.Header.Get("Message-Id"), "<> ")
		if text, ok := plainText(textproto.MIMEHeader(content.Header), content.Body, maxDepth); ok {
			m.Text = text
		}
	}
	m.Text = strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(m.Text, "\r\n", "\n")), "\uFFFD")
	m.Links = findLinks(m.Text)
	return m
}

func decodeHeader(value string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(value)
	if err != nil {
		return value
	}
	return decoded
}

// maxDepth is how far parts inside parts are followed.
const maxDepth = 5

// plainText finds the first text/plain part, or the whole body of a mail that is not made of parts.
func plainText(header textproto.MIMEHeader, body io.Reader, depth int) (string, bool) {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind = "text/plain" // what RFC 2045 says of a mail without the header
	}
	if strings.HasPrefix(kind, "multipart/") {
		if depth == 0 {
			return "", false
		}
		for parts := multipart.NewReader(body, params["boundary"]); ; {
			part, err := parts.NextRawPart()
			if err != nil {
				return "", false
			}
			if text, ok := plainText(part.Header, part, depth-1); ok {
				return text, true
			}
		}
	}
	if kind != "text/plain" && depth < maxDepth {
		return "", false
	}
	text, err := io.ReadAll(decoder(header.Get("Content-Transfer-Encoding"), body))
	return string(text), err == nil
}

func decoder(encoding string, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	default:
		return body
	}
}

var link = regexp.MustCompile(`https?://[^\s<>"']+[^\s<>"'.,;:!?)\]}]`)

func findLinks(text string) []string {
	found := []string{}
	seen := map[string]bool{}
	for _, url := range link.FindAllString(text, -1) {
		if !seen[url] {
			seen[url] = true
			found = append(found, url)
		}
	}
	return found
}
