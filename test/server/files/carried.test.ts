import test from 'ava'
import { carriedFilesContract } from '../../contracts/carried-files.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'

carriedFilesContract(test, 'on a data directory', (t) => startInjectedServer(t))
