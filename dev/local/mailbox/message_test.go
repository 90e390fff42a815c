package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const html = "Content-Type: text/html\r\n\r\n<p>no</p>\r\n"
	tests := map[string]struct {
		raw, text string
	}{
		"no type":   {"Subject: x\r\n\r\nplain\r\n", "plain"},
		"base64":    {"Content-Transfer-Encoding: base64\r\n\r\naMOpbGxv\r\n", "héllo"},
		"no header": {"not a mail", "not a mail"},
		"html only": {html, "Content-Type: text/html\n\n<p>no</p>"},
		"alternatives": {
			"Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n" + html +
				"--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3Db\r\n--b--\r\n",
			"a=b",
		},
		"nested": {
			"Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\nContent-Type: multipart/alternative; boundary=i\r\n\r\n" +
				"--i\r\n\r\ninner\r\n--i--\r\n--o--\r\n",
			"inner",
		},
		"parts without plain text": {
			"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" + html + "--b--\r\n",
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>no</p>\n--b--",
		},
		"not UTF-8": {"Subject: x\r\n\r\n\xff\xfe!\r\n", "\uFFFD!"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.text, parse([]byte(test.raw)).Text)
		})
	}
}

func TestFindLinks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"none":                               nil,
		"see http://a/b?c=d&e=f#g.":          {"http://a/b?c=d&e=f#g"},
		"(https://a/x), <https://b/y>; done": {"https://a/x", "https://b/y"},
		"http://a/x http://a/x":              {"http://a/x"},
		"ftp://a javascript:alert(1)":        nil,
	} {
		require.Equal(t, want, parse([]byte("Subject: x\r\n\r\n"+text)).Links, text)
	}
}
