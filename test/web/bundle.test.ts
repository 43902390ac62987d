import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import test from 'ava'
import { startTestServer } from '../helpers/servers/server.ts'

/** Maximum size of the whole console, as browsers fetch it. */
const mostBytes = 400 * 1024

test('S08 the console requests nothing from other hosts, is small, and its policy allows nothing inline', async (t) => {
  const server = await startTestServer(t)
  const page = await fetch(`${server.url}/`)
  t.is(page.status, 200)
  t.is(page.headers.get('cache-control'), 'no-store')
  t.is(page.headers.get('referrer-policy'), 'no-referrer')
  t.is(page.headers.get('x-frame-options'), 'DENY')
  const policy = page.headers.get('content-security-policy') ?? ''
  for (const part of [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ])
    t.true(policy.split('; ').includes(part), part)
  t.notRegex(policy, /unsafe|https?:|\*|data:|blob:/)
  const nonce = /style-src 'self' 'nonce-([A-Za-z0-9_-]{24})'/.exec(policy)?.[1] ?? 'none'
  const html = await page.text()
  t.true(html.includes(`nonce="${nonce}"`))
  t.notRegex(html, /https?:|<style|<script>|\sstyle=|\son\w+=/)
  const again = await fetch(`${server.url}/`)
  t.false((await again.text()).includes(nonce), 'each response has its own nonce')

  let bytes = gzipSync(html).length
  const addresses = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
  t.deepEqual(addresses, ['console/icon.svg', 'console/main.css', 'console/main.js'])
  for (const address of addresses) {
    const plain = await fetch(new URL(address, `${server.url}/`), {
      headers: { 'accept-encoding': 'gzip;q=0' },
    })
    t.is(plain.headers.get('content-encoding'), null)
    const file = Buffer.from(await plain.arrayBuffer())
    t.notRegex(file.toString(), /@import|url\(["']?https?:|sourceMappingURL=/)
    // node:http, because fetch decompresses responses.
    const asked = request(new URL(address, `${server.url}/`), {
      headers: { 'accept-encoding': 'br;q=1, gzip' },
    })
    asked.end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    t.is(response.headers['content-encoding'], 'gzip')
    t.is(response.headers.vary, 'accept-encoding')
    const packed = await buffer(response)
    t.deepEqual(gunzipSync(packed), file)
    bytes += packed.length
  }
  t.log(`${(bytes / 1024).toFixed(1)} KiB gzipped`)
  t.true(bytes < mostBytes)
})

test('S07 /console serves only its own files', async (t) => {
  const server = await startTestServer(t)
  for (const name of [
    'nosuch.js',
    '..%2fsrc%2fcli.js',
    '%2e%2e%2fpackage.json',
    'constructor',
    '__proto__',
    'index.html',
  ])
    t.is((await server.api('GET', `/console/${name}`)).status, 404, name)
})
