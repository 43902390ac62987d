import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { copyingAgent, done, modeOf } from '../../helpers/agents/copying-agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { FileRoutes, sha256 } from '../../helpers/servers/file-routes.ts'
import { inTar } from '../../helpers/tar.ts'
import { until } from '../../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user and read files of others.
/** Each of these files reports a size of 4,096 bytes and holds a number of a few digits. */
const statistics = '/sys/class/net/lo/statistics'
const ofKernel = existsSync(statistics) ? test : test.skip // Only where sysfs is mounted.
const bytes = Buffer.from(Array.from({ length: 1_000_000 }, (_, n) => `${n}\n`).join(''))

test('a file arrives unchanged, with its checksum; also an empty one, and the target of a link if asked for', async (t) => {
  const { fileRoutes, fetch, directory, path } = await copyingAgent(t)
  writeFileSync(path, bytes)
  const end = await fetch({ path })
  t.like(end, { ...done, said: '' })
  t.is(end.changed, undefined)
  t.true(fileRoutes.sent.get(end.taskId)?.bytes.equals(bytes))
  t.is(fileRoutes.sent.get(end.taskId)?.sha256, sha256(bytes))
  t.true(fileRoutes.requests.every(({ token }) => token === 'Bearer rsm_agt_test'))
  writeFileSync(path, '')
  const empty = await fetch({ path })
  t.like(empty, done)
  t.is(fileRoutes.sent.get(empty.taskId)?.sha256, sha256(Buffer.alloc(0)))
  const link = join(directory, 'link')
  symlinkSync('file', link)
  t.regex((await fetch({ path: link })).error ?? '', /link is a symbolic link; use --follow/)
  t.like(await fetch({ path: link, follow: true }), done)
})

test('a path that is not a regular file is refused without being opened', async (t) => {
  const { fileRoutes, fetch, directory } = await copyingAgent(t)
  const fifo = join(directory, 'fifo')
  spawnSync('mkfifo', [fifo])
  const socket = join(directory, 'socket')
  const listener = createServer().listen(socket)
  t.teardown(() => listener.close())
  await until('the socket exists', () => existsSync(socket))
  mkdirSync(join(directory, 'dir'))
  symlinkSync('fifo', join(directory, 'to-fifo'))
  const cases: [string, RegExp][] = [
    [fifo, /fifo is a FIFO, not a regular file$/],
    [join(directory, 'to-fifo'), /is a FIFO, not a regular file$/],
    [socket, /socket is a socket, not a regular file$/],
    [join(directory, 'dir'), /dir is a directory, not a regular file$/],
    ['/dev/zero', /\/dev\/zero is a device, not a regular file$/],
    ['/proc/self/mem', /^read \/proc\/self\/mem: i\/o error \(EIO\)$/],
    [join(directory, 'none'), /no such file or directory \(ENOENT\)$/],
  ]
  for (const [path, message] of cases) {
    const end = await fetch({ path, follow: true })
    t.like(end, { status: 'FAILED', exitCode: 1 }, path)
    t.regex(end.error ?? '', message)
  }
  t.deepEqual(
    [...fileRoutes.sent.values()].filter(({ bytes: sent }) => sent.length > 0),
    [],
  )
})

test('a file larger than the server accepts is not sent', async (t) => {
  const { fileRoutes, fetch, path } = await copyingAgent(t)
  writeFileSync(path, bytes)
  t.regex((await fetch({ path, maxSize: 1000 })).error ?? '', /has \d+ bytes; the server's limit is 1000$/)
  t.is(fileRoutes.requests.length, 0)
  fileRoutes.fault = (request, response) => {
    request.resume()
    response.writeHead(413, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ code: 413, message: 'no file may be larger than 2 GiB' }))
    return true
  }
  t.regex((await fetch({ path })).error ?? '', /answered 413 to .*: no file may be larger than 2 GiB$/)
})

test('a file that grows or shrinks during the read is sent as read, and the result says so', async (t) => {
  const { fileRoutes, fetch, path } = await copyingAgent(t)
  const change = (how: () => void) => {
    let isDone = false
    fileRoutes.fault = () => {
      if (!isDone) how()
      isDone = true
      return false
    }
  }
  writeFileSync(path, bytes)
  change(() => appendFileSync(path, 'more'))
  const grown = await fetch({ path })
  t.like(grown, { status: 'SUCCESS', exitCode: 0 })
  t.is(grown.error, `${path} changed while it was read; ${bytes.length} bytes were sent as read`)
  t.true(fileRoutes.sent.get(grown.taskId)?.bytes.equals(bytes))
  change(() => truncateSync(path, 3_000_000))
  const shrunk = await fetch({ path })
  t.regex(shrunk.error ?? '', /changed while it was read/)
  const came = fileRoutes.sent.get(shrunk.taskId)
  t.is(came?.sha256, sha256(came?.bytes ?? Buffer.alloc(0)))
})

ofKernel('a file without a meaningful size is read to its end, alone and in a tree', async (t) => {
  const { fileRoutes, fetch } = await copyingAgent(t)
  for (const path of ['/proc/version', `${statistics}/collisions`]) {
    const one = await fetch({ path })
    t.like(one, done, path)
    t.is(fileRoutes.sent.get(one.taskId)?.bytes.toString(), readFileSync(path, 'utf8'))
  }
  t.regex((await fetch({ path: '/proc/version', maxSize: 3 })).error ?? '', /has more than 3 bytes/)
  const tree = await fetch({ path: statistics, kind: 'TREE' })
  t.like(tree, done)
  t.is((await inTar(fileRoutes.sent.get(tree.taskId)?.bytes ?? Buffer.alloc(0))).collisions, '0\n')
})

test("a tree arrives as a tar of files, directories and symlinks; with follow, of the symlinks' targets", async (t) => {
  const { fileRoutes, fetch, directory } = await copyingAgent(t)
  const path = join(directory, 'tree')
  mkdirSync(join(path, 'sub/empty'), { recursive: true })
  writeFileSync(join(path, 'file'), 'one')
  writeFileSync(join(path, 'sub', 'ü'.repeat(90)), 'two')
  symlinkSync('file', join(path, 'link'))
  symlinkSync('sub', join(path, 'to-sub'))
  const fetched = async (follow: boolean) => {
    const end = await fetch({ path, kind: 'TREE', follow })
    t.like(end, done)
    return inTar(fileRoutes.sent.get(end.taskId)?.bytes ?? Buffer.alloc(0))
  }
  const own = {
    './': 'directory',
    file: 'one',
    'sub/': 'directory',
    'sub/empty/': 'directory',
    [`sub/${'ü'.repeat(90)}`]: 'two',
  }
  t.deepEqual(await fetched(false), { ...own, link: 'symlink file', 'to-sub': 'symlink sub' })
  t.deepEqual(await fetched(true), {
    ...own,
    link: 'one',
    'to-sub/': 'directory',
    'to-sub/empty/': 'directory',
    [`to-sub/${'ü'.repeat(90)}`]: 'two',
  })
})

asRoot('the mode of a file without read permission is kept', async (t) => {
  const { fileRoutes, copy, fetch, directory, path } = await copyingAgent(t)
  const tree = join(directory, 'tree')
  mkdirSync(tree, { mode: 0o700 })
  writeFileSync(join(tree, 'shadow'), 'secret')
  chmodSync(join(tree, 'shadow'), 0)
  const { taskId } = await fetch({ path: tree, kind: 'TREE' })
  const file = fileRoutes.put('f1', fileRoutes.sent.get(taskId)?.bytes ?? '')
  t.like(await copy({ file, path, kind: 'TREE' }), { ...done, changed: true })
  t.is(modeOf(join(path, 'shadow')), '0')
  t.is(modeOf(path), '700')
})

asRoot('a file that the runAs user may not read is not fetched', async (t) => {
  const { fileRoutes, fetch, directory, path } = await copyingAgent(t, { runAs: 'nobody' })
  chmodSync(directory, 0o755)
  writeFileSync(path, 'secret', { mode: 0o600 })
  t.regex((await fetch({ path })).error ?? '', /permission denied \(EACCES\)$/)
  t.regex((await fetch({ path: directory, kind: 'TREE' })).error ?? '', /file: permission denied \(EACCES\)$/)
  t.regex((await fetch({ path: '/etc/shadow' })).error ?? '', /permission denied \(EACCES\)$/)
  t.false([...fileRoutes.sent.values()].some(({ bytes: sent }) => sent.includes('secret')))
})

test('a file whose agent is killed during the transfer arrives complete', async (t) => {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const dataDir = await temporaryDirectory(t)
  const path = join(dataDir, 'file')
  writeFileSync(path, bytes)
  const fileRoutes = new FileRoutes(server)
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let isHeld = false
  fileRoutes.fault = (request, response, nth) => {
    if (nth !== 2) return false
    isHeld = true
    held.then(() => response.writeHead(503, { 'retry-after': '0.1' }).end()).catch(() => {})
    request.resume()
    return true
  }
  const agent = await agentProcess(t, server, dataDir, { agentId: 'sending' })
  await server.linked()
  server.order('FETCH_FILE', 'sending', { taskId: 'sends', fetch: { path, kind: 'FILE', maxSize: 1e9 } })
  await until('the transfer is in progress', () => isHeld)
  await kill(agent, 'SIGKILL')
  await agentProcess(t, server, dataDir, { agentId: 'sending' })
  await server.linked(2)
  release()
  t.like(await server.completed('sends'), { status: 'SUCCESS', error: null })
  t.true(fileRoutes.sent.get('sends')?.bytes.equals(bytes))
  t.is(fileRoutes.sent.get('sends')?.sha256, sha256(bytes))
})
