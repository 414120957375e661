// A module of its own, since the build makes one file of it and all that it needs: 2 MB instead of 46.
module.exports = require('date-holidays');
