#pragma once
#include <stddef.h>
#include <stdint.h>

/** FIPS 180-4. `out` takes 32 and 64 bytes. */
void sha256(const uint8_t *data, size_t length, uint8_t out[32]);
void sha512(const uint8_t *data, size_t length, uint8_t out[64]);
