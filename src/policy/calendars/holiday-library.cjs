// A separate module, since the build bundles it with its dependencies: 2 MB instead of 46.
module.exports = require('date-holidays');
