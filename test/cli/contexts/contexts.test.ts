import { execFile } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { Contexts } from '../../../src/cli/contexts/contexts.ts'
import { normalUrl } from '../../../src/core/endpoint.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('contexts and tokens are readable by their owner only', (t) => {
  const home = temporaryDirectory(t)
  const contexts = new Contexts({ XDG_CONFIG_HOME: home })
  contexts.save('prod', { url: 'https://rsm.example', username: 'ann' }, 'rsm_ses_1')
  t.is(mode(contexts.directory), '700')
  t.is(mode(join(contexts.directory, 'config.json')), '600')
  t.is(mode(join(contexts.directory, 'tokens.json')), '600')
  t.is(contexts.directory, join(home, 'rsm'))
})

test('a stored token goes to its own URL only', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('prod', { url: 'https://rsm.example' }, 'rsm_ses_1')
  t.is(contexts.choose({}, {}).token, 'rsm_ses_1')
  t.is(contexts.choose({ url: 'https://RSM.example/' }, {}).token, 'rsm_ses_1')
  t.is(contexts.choose({ url: 'https://other.example' }, {}).token, undefined)
  t.is(contexts.choose({ url: 'http://rsm.example' }, {}).token, undefined)
  // A context whose URL was edited by hand does not keep its token.
  const file = join(contexts.directory, 'config.json')
  writeFileSync(
    file,
    JSON.stringify({ current: 'prod', contexts: { prod: { url: 'https://evil.example' } } }),
  )
  t.is(contexts.choose({}, {}).token, undefined)
})

test('flags take precedence over the environment, and the environment over the current context', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('a', { url: 'http://a' }, 'token-a')
  contexts.save('b', { url: 'http://b' }, 'token-b')
  t.is(contexts.choose({}, {}).url, 'http://b')
  t.is(contexts.choose({}, { RSM_CONTEXT: 'a' }).token, 'token-a')
  t.is(contexts.choose({}, { RSM_URL: 'http://c', RSM_CONTEXT: 'a' }).url, 'http://c')
  t.is(contexts.choose({ context: 'b' }, { RSM_URL: 'http://c' }).url, 'http://b')
  t.is(contexts.choose({ url: 'http://d' }, { RSM_TOKEN: 'env' }).token, 'env')
  const file = join(contexts.directory, 'token')
  writeFileSync(file, 'from-file\n')
  t.is(contexts.choose({ url: 'http://d', tokenFile: file }, { RSM_TOKEN: 'env' }).token, 'from-file')
  t.is(contexts.choose({}, { RSM_TOKEN_FILE: file }).token, 'from-file')
  t.is(contexts.choose({}, { RSM_URL: '', RSM_TOKEN: '' }).token, 'token-b')
})

test('the error without a server names the two ways to get one', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  const error = t.throws(() => contexts.choose({}, {}), { instanceOf: RsmError })
  t.is(error.code, 'unauthenticated')
  t.regex(error.hint ?? '', /rsm login URL.*rsm quickstart/)
})

test('the error for an unknown context suggests the nearest name', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('production', { url: 'http://a' }, undefined)
  t.throws(() => contexts.use('prodution'), { message: /did you mean production/ })
  t.throws(() => contexts.choose({ context: 'x' }, {}), { message: /no such context: x/ })
})

test('removing a context removes its token', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('a', { url: 'http://a' }, 'token')
  contexts.remove('a')
  t.is(contexts.list().current, null)
  t.deepEqual(Object.keys(contexts.list().contexts), [])
  contexts.save('a', { url: 'http://a' }, undefined)
  t.is(contexts.choose({}, {}).token, undefined)
})

test('a login reuses the context of its server and user, and otherwise gets a name that is not taken', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  const url = 'http://a:1'
  const quickstart = { url, username: 'admin', quickstart: '/srv/try' }
  contexts.save('quickstart', quickstart, 'token')
  t.is(contexts.nameFor(url, 'admin'), 'a:1', 'the name comes from the server')
  contexts.save('alice', { url, username: 'alice' }, 'token')
  contexts.save('a:1', { url, username: 'bob' }, 'token')
  contexts.save('a:1-admin', { url: 'http://b:1', username: 'admin' }, 'token')
  t.is(contexts.nameFor(url, 'alice'), 'alice')
  t.is(contexts.nameFor(url, 'bob'), 'a:1')
  t.is(contexts.nameFor(url, 'admin'), `${url}-admin`)
  contexts.save(`${url}-admin`, { url: 'http://b:1', username: 'bob' }, 'token')
  t.is(contexts.nameFor(url, 'admin'), `${url}-admin-2`)
  contexts.save('mine', { url, username: 'alice' }, 'token')
  t.is(contexts.nameFor(url, 'alice'), 'mine', 'the current one first')
  contexts.save('by hand', { url: 'http://c' }, undefined)
  t.is(contexts.nameFor('http://c', 'alice'), 'by hand')
  for (const username of ['alice', 'Alice']) contexts.refuseForeign('alice', url, username)
  t.throws(() => contexts.refuseForeign('alice', url, 'admin'), {
    code: 'conflict',
    message: 'context alice is already logged in as alice',
  })
  t.throws(() => contexts.refuseForeign('alice', 'http://b:1', 'alice'), {
    message: `context alice is already ${url}`,
  })
  t.is(contexts.nameForQuickstart('/srv/try'), 'quickstart')
  t.is(contexts.nameForQuickstart('/srv/other'), 'quickstart-2')
})

test('a URL in contexts of several users requires a named or current context, or a token', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  const url = 'http://a'
  contexts.save('alice', { url, username: 'alice' }, 'hers')
  contexts.save('root', { url, username: 'admin' }, 'his')
  t.is(contexts.choose({ url }, {}).token, 'his')
  t.is(contexts.choose({ url, context: 'alice' }, {}).token, 'hers')
  contexts.save('b', { url: 'http://b', username: 'alice' }, 'token')
  t.throws(() => contexts.choose({ url }, {}), {
    code: 'usage',
    message: 'http://a is in contexts of several users: alice, root',
  })
  t.is(contexts.choose({ url }, { RSM_TOKEN: 'x' }).token, 'x')
  t.is(contexts.choose({ url, isLogin: true }, {}).url, url)
  t.is(contexts.choose({ url, context: 'alice' }, {}).token, 'hers')
})

test('concurrent logins are all kept, and each user has a context', async (t) => {
  const home = temporaryDirectory(t)
  const module = new URL('../../../src/cli/contexts/contexts.js', import.meta.url).href
  const saving = `import { Contexts } from ${JSON.stringify(module)}
    const contexts = new Contexts({ XDG_CONFIG_HOME: ${JSON.stringify(home)} })
    const [username] = process.argv.slice(1)
    for (let at = 0; at < 4; at++) contexts.save(username + at, { url: 'http://b' }, 'token')
    contexts.save(() => contexts.nameFor('http://a', username), { url: 'http://a', username }, 'token')`
  const run = promisify(execFile)
  await Promise.all(
    Array.from('abcdefgh', (name) => run(process.execPath, ['--input-type=module', '-e', saving, name])),
  )
  const contexts = new Contexts({ XDG_CONFIG_HOME: home })
  const { contexts: all } = contexts.list()
  t.is(Object.keys(all).length, 40)
  for (const context of Object.keys(all)) t.is(contexts.choose({ context }, {}).token, 'token')
  const users = Object.values(all).flatMap(({ username }) => username ?? [])
  t.is(users.sort().join(''), 'abcdefgh')
})

test('properties of every object are not contexts, but valid names of contexts', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  for (const name of ['constructor', '__proto__', 'toString']) {
    t.throws(() => contexts.choose({ context: name }, {}), { code: 'not_found' })
    t.notThrows(() => contexts.refuseForeign(name, 'http://a'))
    contexts.save(name, { url: 'http://a' }, `${name}-token`)
    t.like(contexts.choose({ context: name }, {}), { url: 'http://a', token: `${name}-token` })
  }
})

for (const [file, text, said] of [
  ['config.json', '[]', 'it is not an object'],
  ['config.json', '{"contexts":{"a":null},"current":"a"}', 'contexts.a is not an object'],
  ['config.json', '{"contexts":{"a":{"url":"x"}}}', 'contexts.a.url is not an http or https URL'],
  ['config.json', '{"contexts":{"a":{"url":"http://a","caFile":1}}}', 'contexts.a.caFile is not text'],
  ['config.json', '{"current":{}}', 'current is not a name'],
  ['tokens.json', '{"a":"secret"}', 'a is not an object'],
  ['tokens.json', '{"a":{"url":"http://a","token":1}}', 'a is not a token with its url'],
] as const)
  test(`the error for a ${file} with ${text} says what is wrong`, (t) => {
    const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
    contexts.save('a', { url: 'http://a' }, 'token')
    writeFileSync(join(contexts.directory, file), text)
    const error = t.throws(() => contexts.choose({}, {}), { instanceOf: RsmError })
    t.is(error.code, 'usage')
    t.is(error.message, `cannot read ${join(contexts.directory, file)}: ${said}`)
  })

test('a given certificate file must hold certificates even if the URL does not need them', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('plain', { url: 'http://a' }, undefined)
  const missing = { code: 'usage', message: /cannot read the certificates in .*: there is no such file/ }
  t.throws(() => contexts.choose({ caFile: '/nonexistent' }, {}), missing)
  t.throws(() => contexts.choose({}, { RSM_CA_FILE: '/nonexistent' }), missing)
  t.throws(() => contexts.choose({ caFile: '/dev/zero' }, {}), { message: /larger than 16 MiB/ })
  t.throws(() => contexts.choose({ caFile: '/dev/null' }, {}), { message: /holds no certificate/ })
})

test('URLs are http or https and hold no password', (t) => {
  t.is(normalUrl('HTTP://Host:18080/'), 'http://host:18080')
  t.is(normalUrl('https://host/rsm/'), 'https://host/rsm')
  for (const bad of ['host:18080', 'ftp://host', 'http://user:pw@host', 'nonsense'])
    t.throws(() => normalUrl(bad), { instanceOf: RsmError })
})
