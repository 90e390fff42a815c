package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// The SASL mechanisms. The last two never send the password.
const (
	Plain       = "plain"
	ScramSHA256 = "scram-sha-256"
	ScramSHA512 = "scram-sha-512"
)

// TLS returns settings from texts in PEM: the authorities for brokers' certificates ("": the system's), and a client
// certificate with its key (both "": none).
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

func (c Config) secure(cfg *sarama.Config) {
	cfg.Net.TLS.Enable, cfg.Net.TLS.Config = c.TLS != nil, c.TLS
	if c.User == "" {
		return
	}
	cfg.Net.SASL.Enable = true
	cfg.Net.SASL.Mechanism = sarama.SASLMechanism(strings.ToUpper(c.Mechanism))
	cfg.Net.SASL.User, cfg.Net.SASL.Password = c.User, c.Password
	cfg.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if c.Mechanism == ScramSHA256 {
			return &scramClient{hash: scram.SHA256}
		}
		return &scramClient{hash: scram.SHA512}
	}
}

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
