package kafka

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// The mechanisms of SASL with which a client may log in.
const (
	Plain       = "plain"
	ScramSHA256 = "scram-sha-256"
	ScramSHA512 = "scram-sha-512"
)

// mechanisms are sarama's names of them, and the hash of those that never send the password.
var mechanisms = map[string]struct {
	name sarama.SASLMechanism
	hash func() hash.Hash
}{
	Plain:       {sarama.SASLTypePlaintext, nil},
	ScramSHA256: {sarama.SASLTypeSCRAMSHA256, sha256.New},
	ScramSHA512: {sarama.SASLTypeSCRAMSHA512, sha512.New},
}

// TLS makes the settings of an encrypted connection from texts in PEM: the authorities that a broker's certificate is
// checked against, "" for those of the system, and a certificate of this client with its key, both "" for none.
func TLS(authorities, certificate, key string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(authorities)) {
			return nil, errors.New("the authorities have no certificate in PEM")
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
		if err != nil {
			return nil, fmt.Errorf("read the client's certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// secure sets how the client encrypts and logs in.
func (c Config) secure(cfg *sarama.Config) {
	cfg.Net.TLS.Enable, cfg.Net.TLS.Config = c.TLS != nil, c.TLS
	if c.User == "" {
		return
	}
	mechanism := mechanisms[c.Mechanism]
	cfg.Net.SASL.Enable = true
	cfg.Net.SASL.Mechanism = mechanism.name
	cfg.Net.SASL.User, cfg.Net.SASL.Password = c.User, c.Password
	if mechanism.hash != nil {
		cfg.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: mechanism.hash} }
	}
}

// scramClient is one login's conversation.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

// Begin implements [sarama.SCRAMClient].
func (c *scramClient) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}
