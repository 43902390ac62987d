import test from 'ava'
import { paramFaults } from '../../src/core/params.ts'

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

test('ordinary names are allowed, however near they come', (t) => {
  for (const name of allowed.split(/\s+/)) t.deepEqual(paramFaults('params', { [name]: '' }), [], name)
})

test('all faults come at once, under the field they came in', (t) => {
  t.deepEqual(
    paramFaults('secretParams', { PATH: '', A: '', IFS: '' }).map((fault) => fault.field),
    ['secretParams.PATH', 'secretParams.IFS'],
  )
})
