/* crypto.c - certificates and digests; the only file that knows GnuTLS. */
#include "http/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/error.h"
#include "base/memory.h"

#define KEY_FILE "tls.key"
#define CERTIFICATE_FILE "tls.crt"
#define FILE_BYTES_MAX (1u << 20)
#define EARLY_S 86400 /* valid since a day ago: clocks differ */

/* ---- files ---- */

/* The whole file as text, to be freed; -ENOENT where there is none. */
static int read_text(int dir, const char *path, mode_t forbidden, char **ret_text,
                     struct error *err)
{
    int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    struct stat there;
    char *text = NULL;
    int r = 0;
    if (fstat(fd, &there) < 0)
        r = error_set(err, -errno, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(there.st_mode) || there.st_size > FILE_BYTES_MAX)
        r = error_set(err, -EINVAL, "%s: want a file of at most %u bytes", path,
                      FILE_BYTES_MAX);
    else if (there.st_mode & forbidden)
        r = error_set(err, -EPERM,
                      "%s: other users can read this key; want mode 0600 or 0640",
                      path);
    if (r == 0) {
        text = memory_checked(calloc(1, (size_t)there.st_size + 1));
        if (read(fd, text, (size_t)there.st_size) != there.st_size)
            r = error_set(err, -EIO, "%s: cannot be read", path);
    }
    close(fd);
    if (r < 0)
        free(text);
    else
        *ret_text = text;
    return r;
}

/* Written under another name first, so that the file is never incomplete. */
static int write_text(int dir, const char *name, const char *text, mode_t mode,
                      struct error *err)
{
    char beside[64];
    snprintf(beside, sizeof beside, "%s.new", name);
    unlinkat(dir, beside, 0);
    int fd = openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", name, strerror(errno));
    errno = EIO;
    bool whole =
        write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    int why = errno;
    close(fd);
    if (whole && renameat(dir, beside, dir, name) == 0)
        return 0;
    why = whole ? errno : why;
    unlinkat(dir, beside, 0);
    return error_set(err, -why, "%s: %s", name, strerror(why));
}

/* ---- keys and certificates ---- */

static int check_code(int code, const char *what, struct error *err)
{
    return code < 0 ? error_set(err, -EINVAL, "%s: %s", what, gnutls_strerror(code))
                    : 0;
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){ .data = (unsigned char *)(uintptr_t)text,
                             .size = (unsigned)strlen(text) };
}

/* What GnuTLS allocated, as a text of ours. */
static char *take_datum(gnutls_datum_t *datum)
{
    char *text = memory_checked(calloc(1, datum->size + 1u));
    memcpy(text, datum->data, datum->size);
    gnutls_free(datum->data);
    return text;
}

/* A name that a client may have for this machine. */
static int add_name(gnutls_x509_crt_t certificate, const char *name)
{
    return gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, name,
                                                (unsigned)strlen(name),
                                                GNUTLS_FSAN_APPEND);
}

/* Everything but the signature. */
static int fill_certificate(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    unsigned char serial[16];
    char host[256] = "localhost";
    time_t now = time(NULL);
    if (getrandom(serial, sizeof serial, 0) != (ssize_t)sizeof serial)
        return GNUTLS_E_RANDOM_FAILED;
    serial[0] &= 0x7f; /* a serial number is positive */
    gethostname(host, sizeof host - 1);
    const int codes[] = {
        gnutls_x509_crt_set_version(certificate, 3),
        gnutls_x509_crt_set_serial(certificate, serial, sizeof serial),
        gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                      "berthd", 6),
        gnutls_x509_crt_set_activation_time(certificate, now - EARLY_S),
        gnutls_x509_crt_set_expiration_time(certificate,
                                            GNUTLS_X509_NO_WELL_DEFINED_EXPIRATION),
        gnutls_x509_crt_set_basic_constraints(certificate, 0, -1),
        gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE),
        gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0),
        add_name(certificate, "localhost"),
        add_name(certificate, host),
        gnutls_x509_crt_set_key(certificate, key),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] < 0)
            return codes[i];
    return 0;
}

/* A new key and its certificate, as texts. */
static int make_pair(char **ret_key, char **ret_certificate, struct error *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t certificate = NULL;
    gnutls_datum_t key_text = { 0 }, certificate_text = { 0 };
    int code = gnutls_x509_privkey_init(&key);
    if (code == 0)
        code = gnutls_x509_privkey_generate(
            key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (code == 0)
        code = gnutls_x509_crt_init(&certificate);
    if (code == 0)
        code = fill_certificate(certificate, key);
    if (code == 0)
        code =
            gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0);
    if (code == 0)
        code = gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM,
                                       &certificate_text);
    if (code == 0)
        code = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0,
                                                 &key_text);
    if (code == 0) {
        *ret_key = take_datum(&key_text);
        *ret_certificate = take_datum(&certificate_text);
    } else {
        gnutls_free(certificate_text.data);
    }
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
    return check_code(code, "a certificate cannot be made", err);
}

#define KEY_ID_BYTES 32

/* The digest of the public key in a certificate; of a chain, that of the first. */
static int read_certificate_id(const char *text, const char *name,
                               unsigned char id[KEY_ID_BYTES], struct error *err)
{
    gnutls_x509_crt_t certificate = NULL;
    gnutls_datum_t datum = datum_of(text);
    size_t size = KEY_ID_BYTES;
    int code = gnutls_x509_crt_init(&certificate);
    if (code == 0)
        code = gnutls_x509_crt_import(certificate, &datum, GNUTLS_X509_FMT_PEM);
    if (code == 0)
        code =
            gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, id, &size);
    gnutls_x509_crt_deinit(certificate);
    return check_code(code, name, err);
}

static int read_key_id(const char *text, const char *name,
                       unsigned char id[KEY_ID_BYTES], struct error *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_datum_t datum = datum_of(text);
    size_t size = KEY_ID_BYTES;
    int code = gnutls_x509_privkey_init(&key);
    if (code == 0)
        code = gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code == 0)
        code = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id, &size);
    gnutls_x509_privkey_deinit(key);
    return check_code(code, name, err);
}

/* Check that both belong together, and write down the fingerprint. */
static int fill_fingerprint(struct crypto_identity *identity, const char *certificate,
                            const char *key, struct error *err)
{
    unsigned char of_certificate[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
    int r =
        read_certificate_id(identity->certificate, certificate, of_certificate, err);
    if (r == 0)
        r = read_key_id(identity->key, key, of_key, err);
    if (r == 0 && memcmp(of_certificate, of_key, KEY_ID_BYTES) != 0)
        r = error_set(err, -EINVAL, "%s: is not the key of the certificate in %s", key,
                      certificate);
    if (r == 0)
        token_text_encode(of_certificate, identity->fingerprint);
    return r;
}

static int read_pair(struct crypto_identity *identity, int dir, const char *certificate,
                     const char *key, mode_t forbidden, struct error *err)
{
    *identity = (struct crypto_identity){ 0 };
    int r = read_text(dir, key, forbidden, &identity->key, err);
    if (r == 0)
        r = read_text(dir, certificate, 0, &identity->certificate, err);
    if (r == 0)
        r = fill_fingerprint(identity, certificate, key, err);
    if (r < 0)
        crypto_identity_release(identity);
    return r;
}

/* ---- for others ---- */

/* The key is written last: where it is, its certificate is there too. */
static int store_pair(int dir, struct error *err)
{
    char *key = NULL, *certificate = NULL;
    int r = make_pair(&key, &certificate, err);
    if (r == 0)
        r = write_text(dir, CERTIFICATE_FILE, certificate, 0644, err);
    if (r == 0)
        r = write_text(dir, KEY_FILE, key, 0600, err);
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    free(certificate);
    return r;
}

int crypto_identity_load(struct crypto_identity *identity, const char *dir,
                         struct error *err)
{
    int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set(err, -errno, "%s: %s", dir, strerror(errno));
    int r = 0;
    if (faccessat(folder, KEY_FILE, F_OK, 0) < 0)
        r = store_pair(folder, err);
    if (r == 0)
        r = read_pair(identity, folder, CERTIFICATE_FILE, KEY_FILE, 077, err);
    close(folder);
    return r;
}

int crypto_identity_read(struct crypto_identity *identity, const char *certificate,
                         const char *key, struct error *err)
{
    return read_pair(identity, AT_FDCWD, certificate, key, 007, err);
}

void crypto_identity_release(struct crypto_identity *identity)
{
    if (identity->key)
        explicit_bzero(identity->key, strlen(identity->key));
    free(identity->key);
    free(identity->certificate);
    *identity = (struct crypto_identity){ 0 };
}

void crypto_digest(const void *bytes, size_t count,
                   unsigned char ret_digest[CRYPTO_DIGEST_BYTES])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, count, ret_digest) < 0)
        abort(); /* SHA-256 is always there */
}
