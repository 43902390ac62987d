import test from 'ava'
import { startTestServer } from '../../helpers/servers/server.ts'

test('S08 /docs loads nothing from other hosts, and its policy allows no inline scripts or styles', async (t) => {
  const server = await startTestServer(t)
  const page = await fetch(`${server.url}/docs`)
  t.is(page.status, 200)
  t.is(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.is(page.headers.get('x-content-type-options'), 'nosniff')
  const policy = page.headers.get('content-security-policy') ?? ''
  t.regex(policy, /default-src 'none'/)
  t.regex(policy, /frame-ancestors 'none'/)
  t.notRegex(policy, /unsafe|https?:|\*/)
  const html = await page.text()
  t.notRegex(html, /https?:|<style|<script>|\sstyle=|\son\w+=/)
  const addresses = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
  t.is(addresses.length, 4)
  for (const address of addresses) {
    const file = await fetch(new URL(address, `${server.url}/docs`))
    t.is(file.status, 200, address)
    t.is(file.headers.get('cache-control'), 'no-cache')
    t.regex(file.headers.get('content-type') ?? '', /^(text\/css|text\/javascript|image\/png)/)
    t.true((await file.arrayBuffer()).byteLength > 200)
  }
  const css = await (await fetch(`${server.url}/docs/swagger-ui.css`)).text()
  const taken = [...css.matchAll(/@import|url\(["']?([^,"')]{0,5})/g)].map(([, scheme]) => scheme)
  t.deepEqual([...new Set(taken)], ['data:'])
  const start = await (await fetch(`${server.url}/docs/start.js`)).text()
  t.regex(start, /validatorUrl: null/)
  t.notRegex(start, /https?:/)
})

test('S07 /docs serves only its own files', async (t) => {
  const server = await startTestServer(t)
  for (const name of [
    'nosuch.js',
    '..%2fpackage.json',
    '%2e%2e%2findex.js',
    'constructor',
    '__proto__',
    'index.html',
  ]) {
    const { status, body } = await server.api('GET', `/docs/${name}`)
    t.is(status, 404, name)
    t.is(body.code, 404)
  }
})
