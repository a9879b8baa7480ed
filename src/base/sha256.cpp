// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/evp.h>

#include "zellige/error.h"

namespace zellige {

std::string sha256(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), hash, &size, EVP_sha256(), nullptr) != 1) {
    throw Error(Code::internal, "base.sha256", "libcrypto refused to compute SHA-256");
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "sha256:";
  for (unsigned int i = 0; i < size; ++i) {
    text.push_back(kDigits[hash[i] >> 4]);
    text.push_back(kDigits[hash[i] & 15]);
  }
  return text;
}

}  // namespace zellige
