"""Tokens and keys of two Python libraries, as one JSON document: {"PyJWT": {"jwks", "tokens"}, "joserfc": {…}}."""

import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey, RSAKey

CLAIMS = {"iss": "https://issuer.example.com", "aud": "kube", "sub": "ann", "exp": 1_900_000_000}
CURVES = {"ES256": ("P-256", ec.SECP256R1), "ES384": ("P-384", ec.SECP384R1), "ES512": ("P-521", ec.SECP521R1)}
RSA = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]


def pyjwt():
    keys = {name: ec.generate_private_key(curve()) for name, (_, curve) in CURVES.items()}
    shared = rsa.generate_private_key(65537, 2048)
    keys |= {name: shared for name in RSA}
    jwks, tokens = [], {}
    for name, key in keys.items():
        tokens[name] = jwt.encode(CLAIMS, key, algorithm=name, headers={"kid": name})
        algorithm = jwt.algorithms.get_default_algorithms()[name]
        jwks.append(json.loads(algorithm.to_jwk(key.public_key())) | {"kid": name})
    return {"jwks": {"keys": jwks}, "tokens": tokens}


def joserfc():
    jwks, tokens = [], {}
    for name in [*CURVES, *RSA]:
        key = ECKey.generate_key(CURVES[name][0]) if name in CURVES else RSAKey.generate_key(2048)
        tokens[name] = joserfc_jwt.encode({"alg": name, "kid": name}, CLAIMS, key, algorithms=[name])
        jwks.append(key.as_dict(private=False) | {"kid": name})
    return {"jwks": {"keys": jwks}, "tokens": tokens}


print(json.dumps({"PyJWT": pyjwt(), "joserfc": joserfc()}))
