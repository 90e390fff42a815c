package account

// MaxAmount is the largest amount and balance: every JSON parser reads it exactly, also one with floating point only.
const MaxAmount = 1<<53 - 1

// Currency is an ISO 4217 code in capital letters. Only [ParseCurrency] makes one.
type Currency string

var supported = map[Currency]bool{"CHF": true, "EUR": true, "GBP": true, "JPY": true, "USD": true}

func ParseCurrency(text string) (Currency, error) {
	if !supported[Currency(text)] {
		return "", &Error{CodeUnsupportedCurrency, "currency", "is not one of CHF, EUR, GBP, JPY, USD"}
	}
	return Currency(text), nil
}

// Money is a positive amount in the minor unit: 1250 EUR is 12.50 euro, 1250 JPY is 1,250 yen. Only [ParseMoney] makes
// one.
type Money struct {
	Amount   int64
	Currency Currency
}

// ParseMoney accepts 1 to [MaxAmount] of a supported currency.
func ParseMoney(amount int64, currency string) (Money, error) {
	known, err := ParseCurrency(currency)
	if err != nil {
		return Money{}, err
	}
	if amount < 1 || amount > MaxAmount {
		return Money{}, &Error{CodeInvalidAmount, "amount", "is not between 1 and 9007199254740991 minor units"}
	}
	return Money{amount, known}, nil
}
