package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TLSServer is the certificate of a server on 127.0.0.1, which Show replaces for new connections.
type TLSServer struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey // of the authority and of every certificate
	shown     atomic.Pointer[tls.Certificate]
}

// TLSFlaws are defects of a certificate and the errors of a client.
var TLSFlaws = map[string]struct {
	Spoil func(*x509.Certificate)
	Says  string
}{
	"expired":       {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }, "certificate has expired"},
	"not valid yet": {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, "not yet valid"},
	"of another":    {func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, "10.0.0.1"},
	"self-signed":   {nil, "unknown authority"},
}

func NewTLSServer(t testing.TB) *TLSServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	s := &TLSServer{key: key}
	s.authority = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "twinbox tests"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
	}
	s.authority, err = x509.ParseCertificate(s.sign(t, s.authority, s.authority))
	require.NoError(t, err)
	return s.Another(t)
}

// Another returns a server with another certificate of the same authority.
func (s *TLSServer) Another(t testing.TB) *TLSServer {
	t.Helper()
	another := &TLSServer{authority: s.authority, key: s.key}
	another.Show(t, func(*x509.Certificate) {})
	return another
}

// Show shows a certificate changed by spoil; nil: a self-signed one.
func (s *TLSServer) Show(t testing.TB, spoil func(*x509.Certificate)) {
	t.Helper()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	by := s.authority
	if spoil == nil {
		by = leaf
	} else {
		spoil(leaf)
	}
	s.shown.Store(&tls.Certificate{Certificate: [][]byte{s.sign(t, leaf, by)}, PrivateKey: s.key})
}

func (s *TLSServer) sign(t testing.TB, leaf, by *x509.Certificate) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, leaf, by, &s.key.PublicKey, s.key)
	require.NoError(t, err)
	return der
}

func (s *TLSServer) Config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.shown.Load(), nil }}
}

func (s *TLSServer) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.authority)
	return roots
}

// File returns a file with the authority's certificate, until the test ends.
func (s *TLSServer) File(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authority.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.authority.Raw})
	require.NoError(t, os.WriteFile(file, block, 0o600))
	return file
}
