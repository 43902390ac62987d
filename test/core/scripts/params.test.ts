import test from 'ava'
import { hostVariables, jointFaults, paramFaults } from '../../../src/core/scripts/params.ts'

const refused = `PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV BASH_FUNC_x BASHOPTS SHELLOPTS ENV IFS PS4
  PROMPT_COMMAND PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT RUBYLIB RUBYOPT GCONV_PATH
  LOCPATH GLIBC_TUNABLES MALLOC_TRACE HOSTALIASES HOME USER SHELL LOGNAME RSM_TASK_ID TERMINFO PSModulePath
  DOTNET_STARTUP_HOOKS CORECLR_PROFILER JAVA_TOOL_OPTIONS LUA_PATH LUA_INIT_5_4 OPENSSL_CONF GIT_SSH_COMMAND LESSOPEN UID`
const allowed = `VERSION ENVIRONMENT path MY_PATH PATHS NODE_ENV PYTHON_VERSION PERL RUBY_VERSION JAVA_HOME LANG LC_ALL TZ TMPDIR
  http_proxy BASHFUL USERNAME HOMEPAGE GIT_BRANCH _PRIVATE TERM DEBUG PS5 ENVOY rsm_x RSM LUA`

for (const name of refused.split(/\s+/))
  test(`${name} is refused`, (t) => {
    const [fault, ...others] = paramFaults('params', { OK: '1', [name]: 'secret' })
    t.is(others.length, 0)
    t.is(fault?.field, `params.${name}`)
    t.regex(
      fault?.message ?? '',
      new RegExp(`^${name} .*: choose another name, or set it inside the script$`),
    )
    t.false(fault?.message.includes('secret'))
  })

test('ordinary names are allowed, however similar to refused ones', (t) => {
  for (const name of allowed.split(/\s+/)) t.deepEqual(paramFaults('params', { [name]: '' }), [], name)
})

test('all faults are reported at once, with their fields', (t) => {
  t.deepEqual(
    paramFaults('secretParams', { PATH: '', A: '', IFS: '' }).map((fault) => fault.field),
    ['secretParams.PATH', 'secretParams.IFS'],
  )
})

test('name and value together may have as many bytes as Linux allows for one variable', (t) => {
  const most = 131_072 - 2
  t.deepEqual(paramFaults('params', { A: 'x'.repeat(most - 1) }), [])
  t.deepEqual(paramFaults('params', { A: `${'ü'.repeat(65_534)}x` }), [])
  for (const [name, value] of [
    ['A', 'x'.repeat(most)],
    ['AB', 'x'.repeat(most - 1)],
    ['A', 'ü'.repeat(65_535)],
    ['A', '\n'.repeat(131_072)],
  ] as const) {
    const [fault, ...others] = paramFaults('params', { [name]: value })
    t.is(others.length, 0)
    t.like(fault, { field: `params.${name}` })
    t.regex(fault?.message ?? '', /more than 131070 bytes/)
    t.true((fault?.message.length ?? 999) < 200, 'the value is not shown')
  }
})

test('a value may hold any text except half a surrogate pair', (t) => {
  t.deepEqual(paramFaults('params', { A: '\r\n\t\u001b[31m"\'$(x)`😀\ufeff', BASH: '() { :; }' }), [])
  t.regex(paramFaults('params', { A: '\ud800' })[0]?.message ?? '', /surrogate/)
})

test('all parameters together have a size limit, and each may be given only once', (t) => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`P${at}`, 'x'.repeat(100_000)]))
  t.deepEqual(jointFaults(many(5), { S: 'x' }), [])
  t.deepEqual(jointFaults(many(10), { S: 'x'.repeat(100_000) })[0]?.field, 'params')
  t.deepEqual(jointFaults({ S: '1' }, { S: '2' }), [
    { field: 'secretParams.S', message: 'is given in params too' },
  ])
})

const host = { id: 7, hostname: 'web1', tags: {}, clusters: [] }

test('A16 a script gets host, id, clusters and tags; a tag gets a variable if its key gives a unique name', (t) => {
  const tags = { role: 'web', Rack: 'b "7"', 'os-name': 'x', a1: '', zone: '1', ZONE: '2', 'app/part': 'y' }
  t.deepEqual(hostVariables({ ...host, tags, clusters: ['web', 'night shift'] }), {
    RSM_HOST: 'web1',
    RSM_HOST_ID: '7',
    RSM_CLUSTERS: 'web,night shift',
    RSM_TAGS: JSON.stringify(tags),
    RSM_TAG_ROLE: 'web',
    RSM_TAG_RACK: 'b "7"',
    RSM_TAG_A1: '',
  })
  t.deepEqual(hostVariables(host), { RSM_HOST: 'web1', RSM_HOST_ID: '7', RSM_CLUSTERS: '', RSM_TAGS: '{}' })
})

test('A16 the variables of a host have at most 64 KiB, whatever its tags and clusters', (t) => {
  const value = 'ü'.repeat(256)
  const many = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`tag${at}`, value]))
  const told = hostVariables({ ...host, tags: many })
  t.is(told['RSM_TAGS'], JSON.stringify(many))
  t.is(told['RSM_TAG_TAG0'], value)
  t.is(told['RSM_TAG_TAG79'], undefined)
  const more = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`tag${at}`, value]))
  const clusters = Array.from({ length: 5000 }, (_, at) => `cluster-with-a-long-name-${at}`)
  const all = hostVariables({ ...host, tags: more, clusters })
  t.is(all['RSM_HOST'], 'web1')
  t.is(all['RSM_TAGS'], undefined)
  t.is(all['RSM_CLUSTERS'], undefined)
  t.true(Buffer.byteLength(JSON.stringify(all)) < 100 * 1024)
})
