// A certified OpenID provider on loopback, for tests: `node openid-provider.mjs FOLDER-OF-MODULES CERTIFICATE KEY [ISSUER]`.
// The issuer is its own address, unless a reverse proxy in front of it has another one.
//
// Answers commands from standard input, `NUMBER COMMAND`, each with a line of JSON that ends with the command's number:
//   address  where it listens, and its issuer
//   token    a browser's whole way through login and consent (later: straight through), and the ID token it ends with
//   rotate   a new signing key; the earlier ones stay published
//   grants   how often tokens were issued, by grant type
// It ends with its standard input.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import readline from 'node:readline';

const [modules, certificate, key, givenIssuer] = process.argv.slice(2);
const { default: Provider } = await import(path.join(modules, 'node_modules/oidc-provider/lib/index.js'));
const redirect = 'https://client.example/callback';

const keys = [];
function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  keys.unshift({ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: `key-${keys.length + 1}` });
}
newKey();

let answer;
const server = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) =>
  answer(request, response));
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const address = `https://127.0.0.1:${server.address().port}`;
const issuer = givenIssuer ?? address;
let jar = {};
const grants = {};

function start() {
  const provider = new Provider(issuer, {
    jwks: { keys: structuredClone(keys) },
    clients: [{
      client_id: 'kubernetes',
      redirect_uris: [redirect],
      response_types: ['id_token'],
      grant_types: ['implicit'],
      token_endpoint_auth_method: 'none',
    }, {
      // Of a native application any port of a loopback address counts. A public client's refresh tokens are used once.
      client_id: 'kubernetes-login',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/callback', 'http://localhost'],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      token_endpoint_auth_method: 'none',
    }],
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    cookies: { keys: ['loopback'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }) }),
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    renderError: (context, out, error) => {
      context.body = String(error && error.stack);
    },
  });
  provider.on('grant.success', (context) => {
    const { grant_type: type } = context.oidc.params;
    grants[type] = (grants[type] ?? 0) + 1;
  });
  answer = provider.callback();
  jar = {};
}
start();

// Not fetch: the one of Node 18, as Debian 12 has it, does not give cookies one by one.
async function ask(url, body) {
  const form = body && new URLSearchParams(body).toString();
  const request = https.request(url, {
    method: form ? 'POST' : 'GET',
    headers: {
      cookie: Object.entries(jar).map(([name, value]) => `${name}=${value}`).join('; '),
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
  });
  request.end(form);
  const [response] = await once(request, 'response');
  for (const line of response.headers['set-cookie'] ?? []) {
    const [pair] = line.split(';');
    jar[pair.slice(0, pair.indexOf('='))] = pair.slice(pair.indexOf('=') + 1);
  }
  let text = '';
  for await (const piece of response.setEncoding('utf8')) text += piece;
  const { location } = response.headers;
  return { text, location: location && new URL(location, url).href };
}

/** As a browser does it: every redirect, and a form wherever one is shown. */
async function login() {
  const query = new URLSearchParams({
    client_id: 'kubernetes', response_type: 'id_token', scope: 'openid email', nonce: randomUUID(), redirect_uri: redirect,
  });
  let url = `${issuer}/auth?${query}`;
  for (let step = 0; step < 12; step += 1) {
    const { text, location } = await ask(url);
    if (!location && url.includes('/interaction/')) {
      const prompt = text.includes('name="login"') ? { prompt: 'login', login: 'ann', password: 'any' } : { prompt: 'consent' };
      url = (await ask(url, prompt)).location;
    } else if (location && location.startsWith(redirect)) {
      return new URLSearchParams(new URL(location).hash.slice(1)).get('id_token');
    } else if (location) {
      url = location;
    } else {
      throw new Error(`${url}: ${text}`);
    }
  }
  throw new Error('no end to it');
}

const commands = {
  address: () => ({ address, issuer }),
  token: async () => ({ token: await login() }),
  grants: () => ({ grants }),
  rotate: () => {
    newKey();
    start();
    return {};
  },
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [number, command] = line.split(' ');
  if (!command) continue;
  const answered = await commands[command]();
  console.log(JSON.stringify({ ...answered, number: Number(number) }));
}
process.exit(0);
