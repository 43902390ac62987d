import test from 'ava'
import { carriedFilesContract } from '../../contracts/carried-files.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

carriedFilesContract(test, 'on a data directory', (t) => startTestServer(t))
