/*
 * crypto.h - certificates and digests, by GnuTLS; crypto.c is the only file that knows it.
 *
 * berthd proves who it is by a key.  Unless a site gives its own, berthd makes one in the state
 * folder when it first needs one, with a certificate that it signs itself and that does not
 * expire: clients do not trust it by a chain but by the fingerprint of its public key.
 */
#pragma once

#include <stddef.h>

#include "api/token_text.h"

struct error;

#define CRYPTO_DIGEST_BYTES 32

/* A key and its certificate, in PEM; texts are owned. */
struct crypto_identity {
    char *key, *certificate;
    char fingerprint[TOKEN_TEXT_PART + 1]; /* of the public key */
};

/* DIR/tls.key and DIR/tls.crt, made where there is no key yet. */
int crypto_identity_load(struct crypto_identity *identity, const char *dir,
                         struct error *err);

/* A site's own: the certificate, followed by those that signed it, and its key. */
int crypto_identity_read(struct crypto_identity *identity, const char *certificate,
                         const char *key, struct error *err);

void crypto_identity_release(struct crypto_identity *identity);

/* SHA-256. */
void crypto_digest(const void *bytes, size_t count,
                   unsigned char ret_digest[CRYPTO_DIGEST_BYTES]);
