import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test from 'ava'
import { cleanEnv, temporaryDirectory } from '../../fixtures/rsm.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const ran = (program: string, argv: readonly string[], env: Record<string, string>) =>
  spawnSync(program, argv, { env, encoding: 'utf8' })

/** Directory of the npm package and its bill of materials, made from the build. */
const out = mkdtempSync(join(tmpdir(), 'rsm-test-'))
const file = join(out, `rsm-${version}.tgz`)
let printed = ''
test.before(() => {
  printed = execFileSync(process.execPath, ['.ci/package.js', 'npm', 'sbom', '--out', out], {
    encoding: 'utf8',
    stdio: 'pipe',
  })
})
test.after.always(() => rmSync(out, { recursive: true, force: true }))

// Skipped without tar, which reads the package.
const whereTar = spawnSync('tar', ['--version']).status === 0 ? test : test.skip

whereTar('the npm package contains the bundles and their licences, and has no dependencies', (t) => {
  const made = ['SHA256SUMS', `rsm-${version}.cdx.json`, `rsm-${version}.tgz`]
  t.deepEqual(readdirSync(out), made)
  t.is(printed, made.map((name) => `${join(out, name)}\n`).join(''))
  const names = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((name) => name.replace('package/', ''))
  for (const name of [
    'LICENSE',
    'dist/THIRD-PARTY.txt',
    'README.md',
    'oclif.manifest.json',
    'bin/run.js',
    'dist/cli/cli.js',
    'dist/cli/cli.js.map',
    'dist/agent/commands/agent/run.js',
    'dist/server/commands/server/start.js',
    'dist/web/main.js',
    'dist/docs/swagger-ui.css',
    'dist/native/linux-x64.node',
    'dist/native/linux-arm64.node',
  ])
    t.true(names.includes(name), name)
  t.deepEqual(
    names.filter((name) => /^(dist\/(src|test|bench)|src|test|node_modules)\/|tsbuildinfo/.test(name)),
    [],
  )
  const read = (name: string) => execFileSync('tar', ['-xOzf', file, `package/${name}`], { encoding: 'utf8' })
  const description = JSON.parse(read('package.json')) as Record<string, unknown>
  for (const key of ['dependencies', 'devDependencies', 'imports', 'scripts'])
    t.false(key in description, key)
  t.regex(read('LICENSE'), /^MIT License\n\nCopyright \(c\) \d+ rsm authors\n/)
  for (const name of ['fastify', 'ws', '@oclif/core', 'node-pty', '@fastify/swagger-ui', 'preact'])
    t.regex(read('dist/THIRD-PARTY.txt'), new RegExp(`\\n${name} \\d+\\.\\d+\\.\\d+[^\\n]* \\(`))
  t.true(statSync(file).size < 3.5e6, `${statSync(file).size} bytes`)
})

for (const [words, code, told] of [
  [['--help'], 0, ''],
  [['single'], 2, 'unknown package: single\n\n'],
  [['--machine', 'mips'], 2, 'unknown architecture: mips\n\n'],
  [['--lout', 'x'], 2, "Unknown option '--lout'"],
] as const)
  test(`npm run package -- ${words.join(' ')} prints the usage`, (t) => {
    const { status, stdout, stderr } = ran(process.execPath, ['.ci/package.js', ...words], cleanEnv(out))
    t.is(status, code)
    t.true(stderr.startsWith(told), stderr)
    t.regex(stdout + stderr, /^Usage: npm run package -- \[NAME…\][^]*executable, deb, rpm, npm, sbom/m)
    t.notRegex(stderr, / at .*\.js:/)
  })

test('the bill of materials lists the packages of the licence notices, and Node', (t) => {
  const bill = JSON.parse(readFileSync(join(out, `rsm-${version}.cdx.json`), 'utf8')) as {
    metadata: { component: { name: string } }
    components: readonly { name: string; version: string; purl: string; licenses: readonly object[] }[]
    dependencies: readonly { ref: string; dependsOn: readonly string[] }[]
  }
  const notices = readFileSync('dist/THIRD-PARTY.txt', 'utf8')
    .split(`\n${'-'.repeat(78)}\n\n`)
    .slice(1)
  const noticed = notices.map((notice) => /^(\S+) (\S+) \(/.exec(notice)?.slice(1).join('@'))
  const listed = bill.components.map(({ purl }) => decodeURIComponent(purl).replace(/^pkg:\w+\//, ''))
  t.is(new Set(listed).size, listed.length)
  const node = listed.filter((name) => name.startsWith('node@'))
  t.is(node.length, 1)
  t.deepEqual(new Set(listed), new Set([...noticed, ...node]))
  for (const name of ['preact', '@xterm/xterm', '@fastify/swagger-ui'])
    t.true(
      listed.some((each) => each.startsWith(`${name}@`)),
      name,
    )
  for (const { purl, licenses } of bill.components) t.true(licenses.length > 0, purl)
  const refs = new Set([...listed, `rsm@${version}`])
  for (const { ref, dependsOn } of bill.dependencies)
    for (const name of [ref, ...dependsOn]) t.true(refs.has(name), name)
  t.is(bill.metadata.component.name, 'rsm')
})

test('the npm package installs offline as one package, and all parts of rsm work from it', (t) => {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, {
    npm_config_cache: join(home, 'cache'),
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
  })
  const install = [
    'install',
    '--global',
    '--offline',
    '--no-audit',
    '--no-fund',
    '--prefix',
    join(home, 'prefix'),
  ]
  const installed = ran('npm', [...install, file], env)
  t.is(installed.status, 0, installed.stderr)
  t.regex(installed.stdout, /added 1 package in/)
  t.false(existsSync(join(home, 'prefix/lib/node_modules/rsm/node_modules')))
  const rsm = (...argv: string[]) => ran(join(home, 'prefix/bin/rsm'), argv, env)
  const shown = rsm('--version')
  t.regex(
    shown.stdout,
    new RegExp(`^rsm/${version} linux-\\w+ node-v\\S+( commit [0-9a-f]{8}(-dirty)?)?\\n$`),
    shown.stderr,
  )
  const help = rsm('--help')
  t.regex(help.stdout, /COMMANDS\n +exec /, help.stderr)
  const tried = rsm('quickstart', '--once')
  t.is(tried.status, 0, tried.stderr)
  t.regex(tried.stdout, /hello from/)
  t.regex(tried.stderr, /1 host: SUCCESS/)
})
