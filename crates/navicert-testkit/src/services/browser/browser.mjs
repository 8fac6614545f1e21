// A person with a browser, for tests: `node browser.mjs FOLDER-OF-MODULES CHROMIUM PROFILE FIFO`.
// Every line that is written into FIFO is an address, and is opened in a tab; the person does there what `behave` says.
//
// Answers commands from standard input, `NUMBER COMMAND [ARGUMENT]` with the argument in JSON, each with a line of JSON that ends
// with the command's number:
//   behave   what the person does in tabs: {"mode": "fill" | "ignore" | "deny" | "attack", "user", "password"}
//   open     an address, as if it had been written into FIFO; the report of its last page
//   tabs     the addresses that were opened so far
//   reports  the last page of every tab, as soon as the number of tabs in the argument have got there
//   press    `back`, `reload` or `again` (the first address in a new tab) after the last tab; the page that is shown then
//   visits   the addresses that the browser's history has on disk, after it has ended
// It ends with its standard input.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';

const [modules, chromium, profile, fifo] = process.argv.slice(2);
const { chromium: launcher } = (await import(path.join(modules, 'node_modules/playwright-core/index.js'))).default;
const MAX_STEPS = 15;
const STEP_LIMIT = 20_000;

let context;
async function start() {
  context = await launcher.launchPersistentContext(profile, {
    executablePath: chromium,
    headless: true,
    ignoreHTTPSErrors: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  // Providers' pages name fonts elsewhere: nothing but loopback is asked.
  await context.route((url) => !['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname), (route) => route.abort());
}
await start();

let behaviour = { mode: 'fill', user: 'ann', password: 'any' };
const tabs = [];

/** One tab: its address, what it asked for, and where it ended. */
async function open(url) {
  const tab = { url, requests: [], complaints: [], forms: 0, settle: null };
  const settled = new Promise((done) => { tab.settle = done; });
  tab.report = settled;
  tabs.push(tab);
  arrived();
  try {
    tab.page = await context.newPage();
    tab.page.on('request', (request) => tab.requests.push({ url: request.url(), type: request.resourceType() }));
    tab.page.on('console', (message) => tab.complaints.push({ text: message.text(), url: message.location().url }));
    if (behaviour.mode === 'attack') await attack(new URL(url));
    await tab.page.goto(url, { waitUntil: 'load', timeout: STEP_LIMIT });
    if (behaviour.mode !== 'ignore') await answer(tab);
    tab.settle(await describe(tab));
  } catch (error) {
    tab.settle({ failure: String(error), url: tab.page?.url() });
  }
  return tab;
}

/** Fills in and submits whatever form is shown, until there is none. */
async function answer(tab) {
  const { page } = tab;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (new URL(page.url()).pathname.startsWith('/done/')) return;
    if (await page.locator('body[onload*="submit"]').count()) {
      await page.waitForURL('**/done/**', { timeout: STEP_LIMIT }); // a form that submits itself
      return;
    }
    const target = await target_of(page);
    if (!target) return;
    const before = page.url();
    const moved = page.waitForNavigation({ waitUntil: 'load', timeout: STEP_LIMIT });
    await Promise.all([moved, target.click()]);
    tab.forms += 1;
    if (page.url() === before && !(await target_of(page))) return;
  }
  throw new Error(`no end of forms: ${page.url()}`);
}

/** What is clicked next: a way to refuse, or the button of the form after its fields are filled in. */
async function target_of(page) {
  if (behaviour.mode === 'deny') {
    for (const selector of ['a[href$="/abort"]', '[name=abort]', '[name=cancel]']) {
      const refusal = page.locator(selector).first();
      if (await refusal.count()) return refusal;
    }
  }
  for (const field of await page.locator('input:visible').all()) {
    const type = (await field.getAttribute('type')) ?? 'text';
    if (type === 'password') await field.fill(behaviour.password);
    else if (['text', 'email'].includes(type) && !(await field.inputValue())) await field.fill(behaviour.user);
  }
  const button = page.locator('button[type=submit]:visible, input[type=submit]:visible').first();
  return (await button.count()) ? button : null;
}

/** A page of another origin sends what it can to the port of the login. */
async function attack(target) {
  const page = await context.newPage();
  await page.goto(`http://localhost:${hostile.address().port}/`);
  const sent = await page.evaluate(async (origin) => {
    let count = 0;
    const paths = ['/callback?error=access_denied', '/callback?code=evil&state=guess', '/start/guess', '/done/guess', '/'];
    for (let round = 0; round < 250; round += 1) {
      const path = paths[round % paths.length];
      const image = new Image();
      const loaded = new Promise((done) => { image.onload = done; image.onerror = done; });
      image.src = `${origin}${path}#${round}`;
      const calls = [
        fetch(origin + path, { mode: 'no-cors' }),
        fetch(origin + path, { mode: 'cors' }),
        fetch(origin + path, { mode: 'no-cors', method: 'POST', body: 'code=evil&state=guess' }),
        loaded,
      ];
      await Promise.allSettled(calls);
      count += calls.length;
    }
    const frame = document.createElement('iframe');
    frame.src = `${origin}/callback?error=access_denied`;
    document.body.append(frame);
    await new Promise((done) => { frame.onload = done; frame.onerror = done; });
    return count;
  }, target.origin);
  attacks += sent;
  await page.close();
}
let attacks = 0;
const hostile = http.createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>hello</p>'));
hostile.listen(0, 'localhost');
await once(hostile, 'listening');

/** What a reader, a screen reader and an auditor see of the page that is shown. */
async function describe({ page, requests, complaints, forms }) {
  const session = await context.newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  const contrast = {};
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    contrast[colorScheme] = await page.evaluate(lowest_contrast);
  }
  const seen = await page.evaluate(() => ({
    title: document.title,
    lang: document.documentElement.lang,
    text: document.body.innerText,
    referrer: document.referrer,
    mains: document.querySelectorAll('main').length,
    headings: [...document.querySelectorAll('h1')].map((heading) => heading.innerText),
    alerts: document.querySelectorAll('[role=alert]').length,
    scripts: document.querySelectorAll('script').length,
    width: { page: document.documentElement.scrollWidth, window: innerWidth },
  }));
  return {
    ...seen, url: page.url(), contrast, attacks, forms, requests,
    complaints: complaints.filter(({ url }) => url.startsWith(new URL(page.url()).origin)).map(({ text }) => text),
    history: entries.map((entry) => entry.url).filter((url) => url !== 'about:blank'),
  };
}

/** The lowest contrast between a text and what is behind it, by the formula of WCAG 2. Runs in the page. */
function lowest_contrast() {
  const colour = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const linear = [red, green, blue].map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let node = element; node; node = node.parentElement) {
      const back = colour(getComputedStyle(node).backgroundColor);
      if (back.length === 3 || back[3] > 0) return back;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll('body *')]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  const ratios = texts.map((element) => {
    const [one, other] = [light(colour(getComputedStyle(element).color)), light(behind(element))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  });
  return Math.min(...ratios);
}

// Opened for reading and writing, so that it has no end when a writer closes it.
const addresses = new net.Socket({ fd: openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK), readable: true, writable: false });
readline.createInterface({ input: addresses }).on('line', open);

let waiting = [];
function arrived() {
  for (const wake of waiting.splice(0)) wake();
}

const commands = {
  behave: (wanted) => {
    behaviour = { ...behaviour, ...wanted };
    return {};
  },
  open: async (url) => ({ report: await (await open(url)).report }),
  tabs: () => ({ tabs: tabs.map((tab) => tab.url) }),
  reports: async (count) => {
    while (tabs.length < count) await new Promise((wake) => waiting.push(wake));
    return { reports: await Promise.all(tabs.map((tab) => tab.report)) };
  },
  press: async (key) => {
    let { page, url } = tabs.at(-1);
    const status = async (action) => {
      try {
        return { status: (await action)?.status() ?? null };
      } catch (error) {
        return { failure: String(error) };
      }
    };
    const options = { waitUntil: 'load', timeout: STEP_LIMIT };
    if (key === 'again') page = await context.newPage();
    const pressed = { back: () => page.goBack(options), reload: () => page.reload(options), again: () => page.goto(url, options) };
    return { page: { ...(await status(pressed[key]())), url: page.url() } };
  },
  visits: async () => {
    await context.close(); // the history is written when it ends
    const query = 'import json, sqlite3, sys; print(json.dumps([row[0] for row in sqlite3.connect(sys.argv[1]).execute("select url from urls order by id")]))';
    const text = execFileSync('python3', ['-c', query, path.join(profile, 'Default/History')], { encoding: 'utf8' });
    await start();
    return { visits: JSON.parse(text) };
  },
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [number, command, ...rest] = line.split(' ');
  if (!command) continue;
  const run = async () => {
    let answered;
    try {
      answered = await commands[command](rest.length ? JSON.parse(rest.join(' ')) : undefined);
    } catch (error) {
      answered = { failure: String(error.stack) };
    }
    console.log(JSON.stringify({ ...answered, number: Number(number) }));
  };
  run(); // tabs open meanwhile
}
await context.close();
process.exit(0);
