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
	"slices"
	"strings"
	"time"
)

// Message is a mail as the page shows it.
type Message struct {
	ID         string // counts the mails since the start
	From       string
	To         []string // the recipients of the envelope, not of the header
	Subject    string
	MessageID  string // without the angle brackets
	ReceivedAt time.Time
	Text       string
	Links      []string // in the text, in order, each once
}

// parse shows a mail as it is when it cannot read it.
func parse(raw []byte) Message {
	m := Message{Text: string(raw)}
	if content, err := mail.ReadMessage(bytes.NewReader(raw)); err == nil {
		m.Subject = content.Header.Get("Subject")
		if decoded, err := new(mime.WordDecoder).DecodeHeader(m.Subject); err == nil {
			m.Subject = decoded
		}
		m.MessageID = strings.Trim(content.Header.Get("Message-Id"), "<> ")
		if text, ok := plainText(textproto.MIMEHeader(content.Header), content.Body); ok {
			m.Text = text
		}
	}
	m.Text = strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(m.Text, "\r\n", "\n")), "\uFFFD")
	for _, url := range link.FindAllString(m.Text, -1) {
		if !slices.Contains(m.Links, url) {
			m.Links = append(m.Links, url)
		}
	}
	return m
}

// plainText returns the first text/plain part, or the whole body without parts.
func plainText(header textproto.MIMEHeader, body io.Reader) (text string, ok bool) {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err == nil && strings.HasPrefix(kind, "multipart/"):
		for parts := multipart.NewReader(body, params["boundary"]); !ok; {
			part, err := parts.NextRawPart()
			if err != nil {
				return "", false
			}
			text, ok = plainText(part.Header, part)
		}
		return text, true
	case err == nil && kind != "text/plain":
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(header.Get("Content-Transfer-Encoding"))) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(body)
	return string(content), err == nil
}

var link = regexp.MustCompile(`https?://[^\s<>"']+[^\s<>"'.,;:!?)\]}]`)

type piece struct {
	Text string
	Link bool
}

func pieces(text string) (all []piece) {
	end := 0
	for _, at := range link.FindAllStringIndex(text, -1) {
		all = append(all, piece{Text: text[end:at[0]]}, piece{Text: text[at[0]:at[1]], Link: true})
		end = at[1]
	}
	return append(all, piece{Text: text[end:]})
}
