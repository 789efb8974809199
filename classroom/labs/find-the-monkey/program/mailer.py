"""Mails the report, and looks at the mail server's certificate first."""

from email.message import EmailMessage

from OpenSSL import crypto

SENDER = "nightly@example.com"


def expires(pem):
    """When a certificate expires, as the report prints it."""
    return crypto.load_certificate(crypto.FILETYPE_PEM, pem).get_notAfter().decode()


def mail(text):
    message = EmailMessage()
    message["From"] = SENDER
    message.set_content(text)
    return message
