import test from 'ava'
import { scheduledFilesContract } from '../../contracts/scheduled-files.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

scheduledFilesContract(test, 'on a data directory', (t) => startTestServer(t))
