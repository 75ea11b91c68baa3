/* berthd's key and certificate: made once, read again, refused where they are wrong. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "http/crypto.h"

static char folder[64], other[64];
static struct error err;
static struct crypto_identity identity, second;

static void file_in(const char *dir, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", dir, name);
}

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-crypto-XXXXXX");
    snprintf(other, sizeof other, "/tmp/berth-crypto-XXXXXX");
    return mkdtemp(folder) && mkdtemp(other) ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const names[] = { "tls.key", "tls.crt" };
    char path[128];
    crypto_identity_release(&identity);
    crypto_identity_release(&second);
    for (int i = 0; i < 2; i++) {
        file_in(folder, names[i], path);
        unlink(path);
        file_in(other, names[i], path);
        unlink(path);
    }
    return rmdir(folder) | rmdir(other);
}

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

static void a_pair_is_made_once_and_its_key_is_for_its_owner_alone(void **state)
{
    char path[128];
    struct stat there;
    works(crypto_identity_load(&identity, folder, &err));
    works(crypto_identity_load(&second, folder, &err));
    assert_string_equal(identity.key, second.key);
    assert_string_equal(identity.certificate, second.certificate);
    assert_string_equal(identity.fingerprint, second.fingerprint);
    assert_true(token_text_is_part(identity.fingerprint));
    file_in(folder, "tls.key", path);
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(there.st_mode & 07777, 0600);
}

static void two_berthds_have_different_fingerprints(void **state)
{
    works(crypto_identity_load(&identity, folder, &err));
    works(crypto_identity_load(&second, other, &err));
    assert_string_not_equal(identity.fingerprint, second.fingerprint);
}

static void a_key_that_others_can_read_is_refused(void **state)
{
    char key[128], certificate[128];
    works(crypto_identity_load(&identity, folder, &err));
    file_in(folder, "tls.key", key);
    file_in(folder, "tls.crt", certificate);
    chmod(key, 0640);
    assert_int_equal(crypto_identity_load(&second, folder, &err), -EPERM);
    works(crypto_identity_read(&second, certificate, key, &err)); /* a site's group */
    crypto_identity_release(&second);
    chmod(key, 0644);
    assert_int_equal(crypto_identity_read(&second, certificate, key, &err), -EPERM);
    assert_non_null(strstr(err.text, "other users can read this key"));
    assert_null(second.key);
}

static void a_certificate_of_another_key_is_refused(void **state)
{
    char key[128], certificate[128];
    works(crypto_identity_load(&identity, folder, &err));
    works(crypto_identity_load(&second, other, &err));
    crypto_identity_release(&second);
    file_in(folder, "tls.key", key);
    file_in(other, "tls.crt", certificate);
    assert_int_equal(crypto_identity_read(&second, certificate, key, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is not the key of the certificate in"));
}

static void what_is_no_certificate_is_named(void **state)
{
    char key[128], certificate[128];
    works(crypto_identity_load(&identity, folder, &err));
    file_in(folder, "tls.key", key);
    file_in(other, "tls.crt", certificate);
    FILE *file = fopen(certificate, "we");
    assert_non_null(file);
    fputs("-----BEGIN CERTIFICATE-----\nnot base64\n", file);
    fclose(file);
    assert_int_equal(crypto_identity_read(&second, certificate, key, &err), -EINVAL);
    assert_non_null(strstr(err.text, certificate));
    assert_int_equal(crypto_identity_read(&second, certificate, "/nowhere", &err),
                     -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere"));
    assert_true(crypto_identity_read(&second, folder, key, &err) < 0);
}

static void a_certificate_without_its_key_is_made_anew(void **state)
{
    char path[128];
    works(crypto_identity_load(&identity, folder, &err));
    file_in(folder, "tls.key", path);
    unlink(path); /* as if it was killed between the two */
    works(crypto_identity_load(&second, folder, &err));
    assert_string_not_equal(identity.fingerprint, second.fingerprint);
}

static void the_digest_is_sha_256(void **state)
{
    static const unsigned char abc[] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
        0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
        0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad
    };
    unsigned char digest[CRYPTO_DIGEST_BYTES];
    crypto_digest("abc", 3, digest);
    assert_memory_equal(digest, abc, sizeof abc);
}

RUN_CASES(CASE(a_pair_is_made_once_and_its_key_is_for_its_owner_alone),
          CASE(two_berthds_have_different_fingerprints),
          CASE(a_key_that_others_can_read_is_refused),
          CASE(a_certificate_of_another_key_is_refused),
          CASE(what_is_no_certificate_is_named),
          CASE(a_certificate_without_its_key_is_made_anew),
          TEST(the_digest_is_sha_256));
