/*
 * SHA-256 and SHA-512 (FIPS 180-4), which differ in the width of a word, the rounds and the rotations. The constants are
 * the fractions of the roots of the first primes; those of SHA-256 are the upper halves of SHA-512's.
 */
#include "hash.h"
#include <string.h>

static const uint64_t round_constants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

#define ROTATE(x, n) ((x) >> (n) | (x) << (8 * sizeof(x) - (n)))

/* One block into the state: the words, the rounds, and the rotations of the four sigma functions. */
#define COMPRESS(name, word, rounds, shift, a1, a2, a3, b1, b2, b3, c1, c2, c3, d1, d2, d3)                          \
  static void name(word state[8], const uint8_t *block) {                                                            \
    word w[rounds], s[8];                                                                                            \
    for (int i = 0; i < 16; i++) {                                                                                   \
      w[i] = 0;                                                                                                      \
      for (size_t j = 0; j < sizeof(word); j++) w[i] = w[i] << 8 | block[i * sizeof(word) + j];                      \
    }                                                                                                                \
    for (int i = 16; i < rounds; i++) {                                                                              \
      word x = w[i - 15], y = w[i - 2];                                                                              \
      w[i] = w[i - 16] + w[i - 7] + (ROTATE(x, c1) ^ ROTATE(x, c2) ^ x >> c3) +                                      \
             (ROTATE(y, d1) ^ ROTATE(y, d2) ^ y >> d3);                                                              \
    }                                                                                                                \
    memcpy(s, state, sizeof s);                                                                                      \
    for (int i = 0; i < rounds; i++) {                                                                               \
      word e = s[4], a = s[0];                                                                                       \
      word t = s[7] + (ROTATE(e, b1) ^ ROTATE(e, b2) ^ ROTATE(e, b3)) + ((e & s[5]) ^ (~e & s[6])) +                 \
               (word)(round_constants[i] >> shift) + w[i];                                                           \
      word u = (ROTATE(a, a1) ^ ROTATE(a, a2) ^ ROTATE(a, a3)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));          \
      memmove(s + 1, s, 7 * sizeof(word));                                                                           \
      s[4] += t;                                                                                                     \
      s[0] = t + u;                                                                                                  \
    }                                                                                                                \
    for (int i = 0; i < 8; i++) state[i] += s[i];                                                                    \
  }

COMPRESS(compress256, uint32_t, 64, 32, 2, 13, 22, 6, 11, 25, 7, 18, 3, 17, 19, 10)
COMPRESS(compress512, uint64_t, 80, 0, 28, 34, 39, 14, 18, 41, 1, 8, 7, 19, 61, 6)

/* Whole blocks, then the rest with its padding: a one bit, zeros, and the length in bits at the very end. */
#define HASH(name, word, compress, ...)                                                                              \
  void name(const uint8_t *data, size_t length, uint8_t out[8 * sizeof(word)]) {                                     \
    enum { BLOCK = 16 * sizeof(word) };                                                                              \
    word state[8] = {__VA_ARGS__};                                                                                   \
    uint8_t last[2 * BLOCK] = {0};                                                                                   \
    size_t done = 0;                                                                                                 \
    for (; done + BLOCK <= length; done += BLOCK) compress(state, data + done);                                      \
    size_t rest = length - done, end = rest + 1 + 2 * sizeof(word) <= BLOCK ? BLOCK : 2 * BLOCK;                     \
    if (rest > 0) memcpy(last, data + done, rest);                                                                   \
    last[rest] = 0x80;                                                                                               \
    for (int i = 0; i < 8; i++) last[end - 1 - i] = (uint64_t)length * 8 >> (8 * i);                                 \
    for (size_t at = 0; at < end; at += BLOCK) compress(state, last + at);                                           \
    for (int i = 0; i < 8; i++)                                                                                      \
      for (size_t j = 0; j < sizeof(word); j++)                                                                      \
        out[i * sizeof(word) + j] = state[i] >> (8 * (sizeof(word) - 1 - j));                                        \
  }

HASH(sha256, uint32_t, compress256,
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19)
HASH(sha512, uint64_t, compress512,
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179)
